/** Activities as a worker has them: a store on disk, a fake engine over HTTP, one agent, Temporal's context around each call. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Info } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';

import { createAgentActivities } from '../../activities/index.ts';
import type { PlayDependencies } from '../../activities/dependencies.ts';
import type { PauseDetector } from '../../activities/pause-detector.ts';
import type { BlobRef, Checkpoint, EvaluateInput, RolloutInput } from '../../core/contract/contract.ts';
import { hashOf, sha256Hex } from '../../core/text/hashes.ts';
import type { Agent, Scenario } from '../../play/agent.ts';
import { defineAgent, type AgentDefinition } from '../../sdk/agent/define-agent.ts';
import { connectEngine } from '../../play/connections/engine-connection.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { encodeJsonLines } from '../../store/bytes/json.ts';
import type { Store } from '../../store/store.ts';
import { fakeAdapterSha256, startFakeEngine, type FakeEngine, type FakeEngineOptions } from '../fake-engine.ts';
import { ROLLOUT, say } from '../play/play.ts';
import { atItsEnd, temporaryFolder } from '../temporary-folder.ts';

/** A busy machine may well suspend a test; it is refused for what it tests alone. */
export const NEVER_PAUSED: PauseDetector = { longestPauseMs: () => 0 };

export const CODE_SHA256 = sha256Hex('code');

export type Activities = ReturnType<typeof createAgentActivities>;

export interface World {
  root: string;
  store: FileStore;
  engine: FakeEngine;
  activities: Activities;
  warnings: string[];
}

export const guessing = {
  name: 'guess',
  scenarios: Array.from({ length: 30 }, (_, index) => ({ id: `s${index}` })),
  async rollout(context) {
    const digits = [await say(context, `first of ${context.scenario.id}`), await say(context, 'second')].map(Number);
    context.log('digits', digits);
    const reward = digits.reduce((sum, digit) => sum + digit, 0);
    return { reward, metrics: { even: reward % 2 === 0, digits: reward } };
  },
} satisfies AgentDefinition<Scenario>;

/** Closed with the test, or with the file whose top opens it. */
export async function openWorld(
  definition: Partial<Agent> = {},
  dependencies: Partial<PlayDependencies> = {},
  engineOptions: FakeEngineOptions = {},
): Promise<World> {
  const root = temporaryFolder();
  const engine = await startFakeEngine(engineOptions);
  const store = new FileStore(root);
  const warnings: string[] = [];
  const connection = connectEngine({ url: engine.url, key: engine.key });
  const agent: Agent = defineAgent({ ...guessing, ...definition } as AgentDefinition<Scenario>);
  const activities = createAgentActivities({
    store,
    engine: connection,
    agents: new Map([[agent.name, { agent, codeSha256: CODE_SHA256 }]]),
    logger: { info: () => undefined, warn: (_fields, message) => void warnings.push(message) },
    pauses: NEVER_PAUSED,
    ...dependencies,
  });
  atItsEnd(async () => {
    await connection.close();
    await engine.close();
  });
  return { root, store, engine, activities, warnings };
}

/** One call of an activity, with Temporal's context as a worker gives it. */
export function call<I, O>(activity: (input: I) => Promise<O>, input: I, info: Partial<Info> = {}): Promise<O> {
  return createEnvironment(info).run(activity, input);
}

/** The failure of an activity, as Temporal gets it. */
export async function failureOf(doing: Promise<unknown>): Promise<ApplicationFailure> {
  const error: unknown = await doing.catch((thrown: unknown) => thrown);
  if (error instanceof ApplicationFailure) return error;
  throw new Error(`expected an ApplicationFailure, got ${String(error)}`);
}

/** With a logger that says nothing: tests look at failures themselves. */
export function createEnvironment(info: Partial<Info> = {}): MockActivityEnvironment {
  const given = { heartbeatTimeoutMs: 10_000, currentAttemptScheduledTimestampMs: Date.now(), ...info };
  return new MockActivityEnvironment(given, { logger: new DefaultLogger('ERROR') });
}

export function checkpoint(step: number, run = 'demo'): Checkpoint {
  const adapterSha256 = fakeAdapterSha256(`${run}@${step}`) ?? '';
  return { run, branch: 0, step, manifestSha256: sha256Hex(`manifest ${step}`), adapterSha256 };
}

export function putScenarios(store: Store): Promise<BlobRef> {
  return store.putBlob(encodeJsonLines(guessing.scenarios.map((scenario) => ({ id: scenario.id, scenario }))));
}

export async function rolloutInput(store: Store, changes: Partial<RolloutInput> = {}): Promise<RolloutInput> {
  const run = changes.run ?? 'demo';
  const hashed = {
    branch: 0,
    step: 2,
    group: 3,
    scenario: 4,
    attempts: 6,
    seed: 1,
    rollout: ROLLOUT,
    minimumGroupSize: 2,
  };
  const input = { ...hashed, agent: 'guess', agentCodeSha256: CODE_SHA256, scenarios: await putScenarios(store) };
  return {
    ...input,
    run,
    policy: checkpoint(1, run),
    truncated: 'mask',
    overlongBuffer: 0,
    overlongPenalty: 1,
    judge: null,
    inputsSha256: hashOf(hashed),
    ...changes,
  };
}

export async function evaluateInput(store: Store, changes: Partial<EvaluateInput> = {}): Promise<EvaluateInput> {
  const hashed = { branch: 0, step: 0, firstScenario: 20, count: 10, seed: 1, rollout: ROLLOUT };
  const input = { ...hashed, agent: 'guess', agentCodeSha256: CODE_SHA256, scenarios: await putScenarios(store) };
  return { ...input, run: 'demo', policy: checkpoint(0), inputsSha256: hashOf(hashed), ...changes };
}

export function readBytes({ root }: World, key: string): string {
  return readFileSync(join(root, key)).toString('base64');
}
