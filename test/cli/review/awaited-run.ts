/** Runs whose groups were played and await their rewards, as workers leave them behind. */
import type { ExternalConfig } from '../../../core/contract.ts';
import { defaultRunConfig } from '../../../core/run-defaults.ts';
import { rolloutsKey } from '../../../store/layout.ts';
import { publishRun } from '../../../store/records/publish-run.ts';
import type { Store } from '../../../store/store.ts';
import { encodeRollouts, type AttemptRecord, type ChatMessage } from '../../../store/records/trajectories.ts';

const SHA = (digit: string) => digit.repeat(64);

export interface AwaitedOptions {
  readonly run?: string;
  readonly external?: ExternalConfig;
  /** Messages before the answer. */
  readonly messages?: readonly ChatMessage[];
  /** Another one for each attempt by default. */
  readonly answer?: string;
  readonly scenarioId?: string;
  /** Last answer of each attempt. */
  readonly answers?: readonly string[];
}

/** Step 1 of `demo`: two groups of four attempts; the last one of each has failed. */
export async function awaitRewards(store: Store, options: AwaitedOptions = {}): Promise<void> {
  const { run = 'demo', external = {} } = options;
  const settings = { run, agent: 'toy', baseModel: 'pocket', steps: 1, groupsPerStep: 2, groupSize: 4 };
  const config = { ...defaultRunConfig(settings), judge: external.review ? 'review' : 'external', external };
  await publishRun(store, { config, agentCodeSha256: SHA('a') });
  for (const group of [0, 1]) await playGroup(store, group, options);
}

async function playGroup(store: Store, group: number, { run = 'demo', ...options }: AwaitedOptions): Promise<void> {
  const place = { run, branch: 0, step: 1, group };
  const attempts = Array.from({ length: 4 }, (_, attempt) => record(attempt, options));
  const { scenarioId = `s${group}` } = options;
  const { run: _, ...where } = place;
  const header = { schema: 1, inputsSha256: SHA('b'), ...where, scenario: group, scenarioId, attempts: 4 } as const;
  await store.publish(
    rolloutsKey(place),
    await encodeRollouts({ header: { ...header, adapterSha256: SHA('c') }, attempts }),
  );
}

export const QUESTION: ChatMessage = { role: 'user', content: 'Where is my order?' };

function record(attempt: number, options: AwaitedOptions): AttemptRecord {
  const { messages = [QUESTION], answer = options.answers?.[attempt] ?? `answer ${attempt}` } = options;
  return playedAttempt(attempt, { messages, answer, hasFailed: attempt === 3 });
}

interface Played {
  readonly messages: readonly ChatMessage[];
  readonly answer: string;
  readonly hasFailed: boolean;
}

export function playedAttempt(attempt: number, { messages, answer, hasFailed }: Played): AttemptRecord {
  const call = {
    key: 'k',
    occurrence: 0,
    label: null,
    request: { messages: [...messages] },
    message: { role: 'assistant', content: answer },
    finishReason: 'stop',
    promptTokenIds: [1, 2],
    tokenIds: [3],
    logprobs: [-0.5],
    adapterSha256: SHA('c'),
  };
  return {
    attempt,
    status: hasFailed ? 'failed' : 'ok',
    failure: hasFailed ? { type: 'AgentFailed', message: 'it threw' } : null,
    reward: null,
    metrics: {},
    logs: [],
    truncated: false,
    unclaimedAnswers: 0,
    calls: [call],
  };
}
