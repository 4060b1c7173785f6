/** Records of attempts by what was said in them. */
import type { AttemptRecord, CallRecord, ChatMessage, Rollouts } from '../../../store/records/groups/trajectories.ts';

export const system = (content: string): ChatMessage => ({ role: 'system', content });
export const user = (content: string): ChatMessage => ({ role: 'user', content });
export const said = (content: string): ChatMessage => ({ role: 'assistant', content });

export function callOf(messages: ChatMessage[], answer: string, changes: Partial<CallRecord> = {}): CallRecord {
  return {
    key: 'f'.repeat(64),
    occurrence: 0,
    label: null,
    request: { messages },
    message: said(answer),
    finishReason: 'stop',
    promptTokenIds: [1],
    tokenIds: [2],
    logprobs: [-1],
    adapterSha256: 'a'.repeat(64),
    ...changes,
  };
}

export function attemptOf(attempt: number, calls: CallRecord[], changes: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    attempt,
    status: 'ok',
    failure: null,
    reward: 0.5,
    metrics: {},
    logs: [],
    truncated: false,
    unclaimedAnswers: 0,
    calls,
    ...changes,
  };
}

export const FAILED = {
  status: 'failed',
  failure: { type: 'AgentFailed', message: 'it gave up' },
  reward: null,
} as const;

/** Step 1, of the base model. */
export function rolloutsOf(attempts: AttemptRecord[], header: Partial<Rollouts['header']> = {}): Rollouts {
  const place = { schema: 1, inputsSha256: 'b'.repeat(64), branch: 0, step: 1, adapterSha256: null } as const;
  return { header: { ...place, attempts: attempts.length, ...header }, attempts };
}
