/** The loop that retries calls of agents and of judges, by its data; what they do with it is in their own tests. */
import { describe, expect, test } from 'vitest';

import { TemperError } from '../../core/contract/failures.ts';
import { OutageClock } from '../../play/connections/clock.ts';
import { readOutage, retryCall, type Outage, type RetryPolicy, type Trial } from '../../play/connections/retry-call.ts';
import { ENGINE_KIND, HOSTED_JUDGE_KIND } from '../../play/connections/ask-model.ts';
import { skippingClock } from './play.ts';

const AWAY: Outage = { reason: 'away', retryAfterMs: 0, internal: null };
const POLICIES: [string, RetryPolicy][] = [
  ['an agent', ENGINE_KIND.retries],
  ['a hosted model', HOSTED_JUDGE_KIND.retries],
];

interface Script {
  policy: RetryPolicy;
  budgetMs?: number;
  /** One try each; the last one again and again. */
  trials: (Trial<string> | Error)[];
  signal?: AbortSignal;
}

async function play({ policy, budgetMs = 60_000, trials, signal }: Script) {
  const clock = skippingClock();
  const waits: number[] = [];
  let tries = 0;
  const call = retryCall({
    policy,
    limits: {
      budgetMs,
      signals: signal ? [signal] : [],
      checkFresh: () => undefined,
      outage: new OutageClock(clock),
      clock: { now: () => clock.now(), sleep: (ms, ends) => (waits.push(ms), clock.sleep(ms, ends)) },
    },
    ask: async () => {
      const trial = trials[Math.min(tries++, trials.length - 1)]!;
      if (trial instanceof Error) throw trial;
      return trial;
    },
    exhausted: ({ reason, retryAfterMs }) => new TemperError('EngineFailed', reason, { retryAfterMs }),
    internal: (message) => `gave up: ${message}`,
  });
  return { answer: await call.catch((error: unknown) => error), waits, tries };
}

describe.each(POLICIES)('a call of %s', (_, policy) => {
  const { firstWaitMs, longestWaitMs } = policy;

  test('waits twice as long each time, up to a limit, and gets its answer', async () => {
    const trials = [...Array.from({ length: 9 }, () => ({ outage: AWAY })), { answer: 'hello' }];
    const { answer, waits } = await play({ policy, trials });
    expect(answer).toBe('hello');
    expect(waits).toEqual(waits.map((_wait, index) => Math.min(firstWaitMs * 2 ** index, longestWaitMs)));
  });

  test('waits as long as the server asks, and not at all where that is beyond the budget', async () => {
    const asked = (retryAfterMs: number) => ({ outage: { ...AWAY, retryAfterMs } });
    expect(await play({ policy, trials: [asked(30_000), { answer: 'hello' }] })).toMatchObject({ waits: [30_000] });
    const refused = await play({ policy, trials: [asked(61_000)] });
    expect(refused).toMatchObject({ waits: [], answer: { type: 'EngineFailed', retryAfterMs: 61_000 } });
  });

  test('is tried once more when its budget ends, and then given up', async () => {
    const { answer, waits } = await play({ policy, budgetMs: 1000, trials: [new Error('silence')] });
    expect(answer).toMatchObject({ type: 'EngineFailed', message: 'silence' });
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBe(1000);
  });

  test('ends at once by an error that is final, and by an abort', async () => {
    const final = new TemperError('BadConfig', 'refused');
    expect(await play({ policy, trials: [{ outage: AWAY }, final] })).toMatchObject({ tries: 2, answer: final });
    const aborted = await play({ policy, trials: [{ outage: AWAY }], signal: AbortSignal.abort(new Error('enough')) });
    expect(aborted).toMatchObject({ tries: 1, answer: { message: 'enough' } });
  });
});

test('an internal error of the engine is given up after four tries and 15 seconds, and a provider’s is an outage', async () => {
  const refusal = { status: 500, retryAfter: '60', code: 'internal', reason: '500: oh', message: 'oh' };
  const trials = POLICIES.map(([, policy]) => [{ outage: readOutage(refusal, policy)! }]);
  const ofAgent = await play({ policy: ENGINE_KIND.retries, budgetMs: 10, trials: trials[0]! });
  expect(ofAgent.answer).toBe('gave up: oh');
  expect(ofAgent.waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(15_000);
  const ofJudge = await play({ policy: HOSTED_JUDGE_KIND.retries, budgetMs: 10, trials: trials[1]! });
  expect(ofJudge.answer).toMatchObject({ type: 'EngineFailed', retryAfterMs: 60_000 });
});

test('what is retried, by status', () => {
  const isRetried = (policy: RetryPolicy, status: number, code?: string): boolean =>
    readOutage({ status, code, retryAfter: null, message: '' }, policy) !== null;
  const statuses = [302, 400, 401, 402, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 503];
  const retried = POLICIES.map(([, policy]) => statuses.filter((status) => isRetried(policy, status)));
  expect(retried).toEqual([
    [408, 425, 429, 500, 502, 503],
    [402, 408, 409, 425, 429, 500, 502, 503],
  ]);
  expect(POLICIES.map(([, policy]) => isRetried(policy, 429, 'insufficient_quota'))).toEqual([false, true]);
});
