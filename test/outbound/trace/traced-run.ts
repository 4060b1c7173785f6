/** A step of a run as workers leave it behind: an agent with a tool, judged, with measured times. */
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import type { StepSummary } from '../../../core/contract/contract.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { groupTimesKey, judgedKey, rolloutsKey } from '../../../store/layout.ts';
import { hashBytes } from '../../../store/bytes/sha256.ts';
import {
  encodeRollouts,
  type AttemptRecord,
  type CallRecord,
  type ChatMessage,
} from '../../../store/records/groups/trajectories.ts';
import type { Store } from '../../../store/store.ts';
import { attemptOf, callOf, FAILED } from '../../store/records/made-attempt.ts';
import type { StepRow, Delivery } from '../../../outbound/target.ts';

export const RUN = 'demo';
export const STARTED = Date.parse('2026-11-27T08:00:00Z');
/** After the group. */
export const COMMITTED = STARTED + 60_000;

const SHA = (digit: string) => digit.repeat(64);
const TOOLS = [{ type: 'function', function: { name: 'find_order', parameters: { type: 'object' } } }];

/** Rewards of the attempts; null: it failed. */
export async function writeStep(store: Store, step: number, rewards: readonly (number | null)[]): Promise<void> {
  const place = { run: RUN, branch: 0, step, group: 0 };
  const attempts = rewards.map((reward, attempt) => attemptWith(attempt, reward));
  const header = { schema: 1, inputsSha256: SHA('b'), branch: 0, step, group: 0, attempts: attempts.length } as const;
  const scenario = { scenarioId: 'order-7', scenario: 4, adapterSha256: SHA('c') };
  const bytes = await encodeRollouts({ header: { ...header, ...scenario }, attempts });
  await store.publish(rolloutsKey(place), bytes);
  const judged = {
    schema: 1,
    inputsSha256: SHA('b'),
    rolloutsSha256: hashBytes(bytes),
    judge: 'openai/gpt-5-mini',
    rewards,
    scores: rewards,
    explanations: rewards.map((reward) => (reward === null ? null : `It is worth ${reward}.`)),
    metrics: {},
  };
  await store.publish(judgedKey(place), encodeJson(judged));
  await store.replace(groupTimesKey(place), encodeJson(timesOf(attempts)));
}

/** The second call of the first attempt was answered from the journal. */
function timesOf(attempts: readonly AttemptRecord[]): object {
  const timed = attempts.map(({ attempt }) => {
    const at = STARTED + attempt * 1000;
    const second = attempt === 0 ? null : [at + 300, at + 400];
    return [attempt, { startedAt: at, endedAt: at + 500, calls: [[at + 100, at + 200], second] }];
  });
  const orders = attempts.map(({ attempt, calls }) => [attempt, calls.map((_, index) => index)]);
  return {
    startedAt: STARTED,
    endedAt: STARTED + 30_000,
    callOrders: Object.fromEntries(orders),
    attemptTimes: Object.fromEntries(timed),
  };
}

function attemptWith(attempt: number, reward: number | null): AttemptRecord {
  const question: ChatMessage = { role: 'user', content: `Where is order 7? (${attempt})` };
  const called: ChatMessage = {
    role: 'assistant',
    content: '',
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find_order', arguments: '{"id":7}' } }],
  };
  const result: ChatMessage = { role: 'tool', tool_call_id: 'c1', content: 'in Oslo' };
  const answer: ChatMessage = { role: 'assistant', content: 'In Oslo.' };
  const calls = [
    toolCall('1', [question], called, 'tool_calls'),
    toolCall('2', [question, called, result], answer, 'stop'),
  ];
  return attemptOf(attempt, calls, { metrics: { isPolite: true, moves: 2 }, ...(reward === null && FAILED) });
}

function toolCall(key: string, messages: ChatMessage[], message: ChatMessage, finishReason: string): CallRecord {
  return callOf(messages, '', {
    key: SHA(key),
    request: { messages, tools: TOOLS, temperature: 1, max_tokens: 64 },
    message,
    finishReason,
    promptTokenIds: messages.map((_, index) => index),
    tokenIds: [1, 2, 3],
    logprobs: [-1, -1, -1],
    adapterSha256: SHA('c'),
  });
}

export function stepRow(step: number): StepRow {
  const summary: StepSummary = {
    step,
    reward: 0.5,
    metrics: { isPolite: 1 },
    train: { loss: 0.25 },
    learningRate: 0.001,
    groups: 1,
    replacedGroups: 0,
    unused: {},
    failedAttempts: 1,
    attempts: 4,
    sampledTokens: 24,
    seconds: { step: 50 },
    adapterSha256: SHA('d'),
  };
  const place = { kind: 'step', number: step - 1, branch: 0, step, at: COMMITTED } as const;
  return { ...place, summary, totals: { seconds: 50, attempts: 4, sampledTokens: 24 } };
}

export async function deliveryOf(store: Store, memory: Delivery['memory'] = {}): Promise<Delivery> {
  const config = defaultRunConfig({ run: RUN, agent: 'support', baseModel: 'pocket' });
  const known = { storeId: await store.id(), agentCodeSha256: SHA('e'), group: null, beganAt: STARTED, failure: null };
  const { signal } = new AbortController();
  return { run: { run: RUN, config, ...known }, branch: 0, rows: 0, memory, newest: [], evals: [], signal };
}
