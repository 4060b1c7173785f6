/** Attempts against a fake engine, with a journal in memory that survives as a file would. */
import { setImmediate } from 'node:timers/promises';
import type OpenAI from 'openai';

import type { RolloutConfig } from '../../core/contract/contract.ts';
import { TemperError } from '../../core/contract/failures.ts';
import type { RewardWeights } from '../../core/rules/named-rewards.ts';
import type { Agent, RolloutContext, RolloutResult, Scenario } from '../../play/agent.ts';
import { defineAgent } from '../../sdk/agent/define-agent.ts';
import type { Resources } from '../../play/resources/resource.ts';
import { Attempts, type AttemptsOptions } from '../../play/play-attempts.ts';
import type { Clock } from '../../play/connections/clock.ts';
import { connectEngine, type EngineConnection } from '../../play/connections/engine-connection.ts';
import type { JournalSegments } from '../../store/store.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import { fakeAdapterSha256, type FakeEngine } from '../fake-engine.ts';

/** Times that a busy machine keeps; a test of a limit names a short one. */
export const ROLLOUT: RolloutConfig = {
  temperature: 1,
  maxTokens: 8,
  maxCallsPerAttempt: 10,
  attemptTimeoutMs: 20_000,
  callTimeoutMs: 10_000,
  callRetryBudgetMs: 1500,
};

export const MODEL = 'demo@3';

export interface MemoryJournal {
  segments: Uint8Array[];
  open(): JournalSegments;
}

export function memoryJournal(segments: Uint8Array[] = []): MemoryJournal {
  return {
    segments,
    open() {
      const own = segments.length;
      const existing = [...segments];
      segments.push(new Uint8Array());
      return {
        existing,
        append: (record) => void (segments[own] = Buffer.concat([segments[own] ?? new Uint8Array(), record])),
        close: () => undefined,
      };
    },
  };
}

/** Waiting takes no time, and the clock shows the time waited for alone: a busy machine's is not in it. */
export function skippingClock(): Clock {
  const beganAt = Date.now();
  let skippedMs = 0;
  return {
    now: () => beganAt + skippedMs,
    async sleep(ms, signal) {
      await setImmediate();
      signal.throwIfAborted();
      skippedMs += ms;
    },
  };
}

/** The engine: a fake one, or the GPU worker. */
type TestEngine = Pick<FakeEngine, 'url' | 'key'>;

export type TestRollout = (context: RolloutContext) => RolloutResult | Promise<RolloutResult>;

export interface PlayOptions extends Partial<Omit<AttemptsOptions, 'agent' | 'rollout'>> {
  attempts?: number;
  rollout?: Partial<RolloutConfig>;
  journal?: MemoryJournal;
  scenario?: Scenario;
  /** Folder of the agent's file. */
  folder?: string;
  /** Weights of named rewards. */
  rewards?: RewardWeights;
  needs?: Resources;
  /** Rewards of a judge, of people or of the whole group. */
  graded?: Pick<Agent, 'reward' | 'rewardGroup'>;
}

const connections = new Map<string, EngineConnection>();

export function prepareAttempts(engine: TestEngine, rollout: TestRollout, options: PlayOptions = {}): Attempts {
  const connection = connections.get(engine.url) ?? connectEngine({ url: engine.url, key: engine.key });
  connections.set(engine.url, connection);
  const { attempts = 1, scenario = { id: 'one' }, folder, needs, rewards, graded } = options;
  const agent = defineAgent({ name: 'test', scenarios: [], rollout, ...(needs && { resources: needs }) });
  return new Attempts({
    agent: {
      ...agent,
      ...graded,
      ...(folder === undefined ? {} : { folder }),
      ...(rewards === undefined ? {} : { rewards }),
    },
    planned: Array.from({ length: attempts }, (_, attempt) => ({ attempt, scenarioIndex: 5, scenario })),
    concurrency: 64,
    engine: connection,
    segments: (options.journal ?? memoryJournal()).open(),
    policy: { model: MODEL, adapterSha256: fakeAdapterSha256(MODEL) },
    mode: 'train',
    place: { seed: 1, branch: 0, step: 4 },
    attemptKey: (attempt) => `a${attempt}`,
    signal: new AbortController().signal,
    isFresh: () => true,
    ...options,
    rollout: { ...ROLLOUT, ...options.rollout },
  });
}

export function playAttempts(
  engine: TestEngine,
  rollout: TestRollout,
  options: PlayOptions = {},
): Promise<AttemptRecord[]> {
  return prepareAttempts(engine, rollout, options).play();
}

export async function playOne(
  engine: TestEngine,
  rollout: TestRollout,
  options: PlayOptions = {},
): Promise<AttemptRecord> {
  const [attempt] = await playAttempts(engine, rollout, options);
  if (attempt === undefined) throw new Error('no attempt was played');
  return attempt;
}

export async function markOf(playing: Promise<unknown>): Promise<TemperError> {
  const error: unknown = await playing.then(
    () => 'an attempt that counts as data',
    (thrown: unknown) => thrown,
  );
  if (error instanceof TemperError) return error;
  throw new Error(`expected a mark, got ${String(error)}`);
}

/** Asks once and returns what the policy said. */
export async function say(
  { openai, model }: Pick<RolloutContext, 'openai' | 'model'>,
  content: string,
  more: object = {},
  options: OpenAI.RequestOptions = {},
): Promise<string> {
  const body = { model, messages: [{ role: 'user' as const, content }], ...more };
  const completion = await openai.chat.completions.create(body, options);
  return completion.choices[0]?.message.content ?? '';
}
