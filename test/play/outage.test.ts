import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';

import type { FakeEngine, FakeFailure } from '../fake-engine.ts';
import {
  markOf,
  memoryJournal,
  playAttempts,
  playOne,
  prepareAttempts,
  say,
  skippingClock,
  type TestRollout,
} from './play.ts';
import { temporaryEngine } from './shared-engine.ts';

let engine: FakeEngine;
beforeEach(async () => {
  engine = await temporaryEngine();
});

const threeTurns: TestRollout = async (context) => {
  for (let turn = 0; turn < 3; turn++) await say(context, `turn ${turn}`);
  return 1;
};

/** Users write this, and it must not turn an outage into data. */
const swallowing: TestRollout = async (context) => {
  try {
    return await threeTurns(context);
  } catch {
    return { reward: 0 };
  }
};

/** A good answer but for one member. */
function garbled(choice: object): string {
  return JSON.stringify({
    choices: [{ message: { role: 'assistant', content: '1' }, finish_reason: 'stop', ...choice }],
  });
}

const SHORT = { callRetryBudgetMs: 250 };

describe('an outage that ends within the budget', () => {
  const failures: [string, FakeFailure[]][] = [
    ['503', [{ status: 503 }, { status: 503 }]],
    ['429', [{ status: 429 }]],
    ['500', [{ status: 500, body: 'boom' }]],
    ['a cut connection', [{ destroy: true }]],
    ['an answer that is no JSON', [{ status: 200, body: '<html>' }]],
    ['half an answer', [{ status: 200, body: '{"choices":[]}' }]],
    ['JSON that is nothing', [{ status: 200, body: 'null' }]],
    ['a list where an answer should be', [{ status: 200, body: '[1,2]' }]],
    ['a message that is a text', [{ status: 200, body: '{"choices":[{"message":"hello"}]}' }]],
    ['ids that are none', [{ status: 200, body: garbled({ token_ids: 'abc' }) }]],
    ['ids with holes', [{ status: 200, body: garbled({ token_ids: [1, null] }) }]],
    ['log-probabilities that are none', [{ status: 200, body: garbled({ logprobs: { content: 7 } }) }]],
    ['a body shorter than its length', [{ cut: 'with its length' }]],
    ['a body that ends in the middle', [{ cut: 'chunked' }]],
    ['a page of a proxy', [{ status: 502, body: '<html>Bad gateway</html>' }]],
  ];
  test.each(failures)('of %s is not seen by the agent', async (_name, scripted) => {
    engine.failNext(...scripted);
    const attempt = await playOne(engine, threeTurns);
    expect(attempt.calls).toHaveLength(3);
    expect(engine.received).toBe(3 + scripted.length);
  });

  test('of an engine that is away is waited for, and shown', async () => {
    await engine.stop();
    const attempts = prepareAttempts(engine, threeTurns, { attempts: 2, rollout: { callRetryBudgetMs: 5000 } });
    const playing = attempts.play();
    await expect
      .poll(() => attempts.progress())
      .toMatchObject({ done: 0, of: 2, waiting: { attempts: 2, reason: expect.stringContaining('ECONNREFUSED') } });
    await engine.start();
    expect((await playing).map(({ status }) => status)).toEqual(['ok', 'ok']);
  });

  test.each<[string, FakeFailure]>([
    ['never answers', { hang: true }],
    ['stops in the middle of its answer', { stall: true }],
  ])('of an engine that %s ends with the call’s deadline', async (_name, failure) => {
    engine.failNext(failure);
    const attempt = await playOne(engine, threeTurns, { rollout: { callTimeoutMs: 3000 } });
    expect(attempt.status).toBe('ok');
    expect(engine.received).toBe(4);
  });

  test('shows the newest reason, since when, and when the engine is asked again', async () => {
    const began = Date.now();
    engine.failNext({ status: 500, body: 'boom' }, { status: 429, headers: { 'retry-after': '1' } });
    const attempts = prepareAttempts(engine, threeTurns, { rollout: { callRetryBudgetMs: 5000 } });
    const playing = attempts.play();
    await expect.poll(() => attempts.progress().waiting?.reason).toContain('429');
    const { since, nextTryAt } = attempts.progress().waiting!;
    expect(Date.parse(since)).toBeGreaterThanOrEqual(began - 1);
    expect(Date.parse(nextTryAt!) - Date.parse(since)).toBeGreaterThanOrEqual(1000);
    await playing;
    expect(attempts.progress().waiting).toBeNull();
  });
});

test('a Retry-After beyond the budget ends the call at once', async () => {
  engine.failNext({ status: 429, headers: { 'retry-after': '60' } });
  const clock = skippingClock();
  const start = clock.now();
  const mark = await markOf(playOne(engine, swallowing, { clock }));
  expect(mark).toMatchObject({ type: 'EngineFailed', retryAfterMs: 60_000 });
  expect(clock.now()).toBe(start);
});

test('an outage of one attempt does not throw away what the others are being answered', async () => {
  const journal = memoryJournal();
  engine.failWhen(({ call }) => (call.startsWith('a0/') ? { status: 503 } : null));
  await markOf(playAttempts(engine, threeTurns, { attempts: 6, journal, rollout: { callRetryBudgetMs: 1 } }));
  expect(engine.executed).toHaveLength(15);
  engine.failWhen(() => null);
  await playAttempts(engine, threeTurns, { attempts: 6, journal });
  expect(engine.executed).toHaveLength(18);
});

describe('an outage beyond the budget is no data', () => {
  test('whatever the agent returns, and says what to do about it', async () => {
    engine.failWhen((_call, received) => (received > 1 ? { status: 503 } : null));
    const mark = await markOf(playOne(engine, swallowing, { rollout: SHORT }));
    expect(mark).toMatchObject({ type: 'EngineFailed', retryable: true });
    expect(mark.message).toMatch(
      /did not answer .* within its retry budget of 250 ms .*scripted failure 503.*; start it, or/,
    );
  });

  test.each<[string, TestRollout]>([
    ['has a timeout of its own', (context) => say(context, 'x', {}, { timeout: 50 }).then(Number, () => 0)],
    ['does not wait for its call', (context) => Promise.race([say(context, 'x').then(Number, () => 0), sleep(100, 0)])],
  ])('though the agent %s', async (_, impatient) => {
    await engine.stop();
    expect(await markOf(playOne(engine, impatient))).toMatchObject({ type: 'EngineFailed' });
  });

  test('and no further call is sent', async () => {
    engine.failWhen(() => ({ status: 503 }));
    const insisting: TestRollout = async (context) => {
      for (let turn = 0; turn < 50; turn++) await say(context, `turn ${turn}`).catch(() => null);
      return 0;
    };
    await markOf(playOne(engine, insisting, { rollout: { ...SHORT, maxCallsPerAttempt: 100 } }));
    const received = engine.received;
    await sleep(100);
    expect(engine.received).toBe(received);
  });
});

test.each([400, 401, 403, 404])('%i is the caller’s fault and not retried', async (status) => {
  engine.failNext({ status });
  const mark = await markOf(playOne(engine, swallowing));
  expect(mark).toMatchObject({ type: 'BadConfig', retryable: false });
  expect(mark.message).toContain(String(status));
  expect(engine.received).toBe(1);
});

test.each(['StoreCorrupt', 'LossNotFinite', 'PolicyMismatch'])(
  '%s of the engine ends the attempt for good, in the engine’s words',
  async (type) => {
    engine.failNext({
      status: 422,
      body: JSON.stringify({ error: { type, message: 'blobs/ab must have …', code: 'x' } }),
    });
    const mark = await markOf(playOne(engine, swallowing));
    expect(mark).toMatchObject({ type, retryable: false });
    expect(mark.message).toContain('blobs/ab must have …');
    expect(engine.received).toBe(1);
  },
);

test('a cancellation ends attempts at once, and what they return is no data', async () => {
  engine.failWhen(() => ({ hang: true }));
  const cancelling = new AbortController();
  // Nothing else ends them within the time that this test has.
  const rollout = { attemptTimeoutMs: 600_000, callTimeoutMs: 600_000, callRetryBudgetMs: 600_000 };
  const playing = playAttempts(engine, swallowing, { attempts: 4, signal: cancelling.signal, rollout });
  setTimeout(() => cancelling.abort(), 100);
  expect((await markOf(playing)).message).toContain('cancelled');
});

test('a process that stood still sends nothing and decides nothing', async () => {
  const journal = memoryJournal();
  let fresh = true;
  const stalling: TestRollout = async (context) => {
    await say(context, 'before');
    fresh = false;
    return swallowing(context);
  };
  const mark = await markOf(playOne(engine, stalling, { journal, isFresh: () => fresh }));
  expect(mark).toMatchObject({ type: 'StaleAttempt', retryable: true });
  expect(engine.received).toBe(1);
});

describe('the attempt’s deadline', () => {
  test('does not count what was waited for an engine that did not answer', async () => {
    engine.failNext({ status: 503 }, { status: 503 }, { hang: true });
    const rollout = { attemptTimeoutMs: 200, callTimeoutMs: 150, callRetryBudgetMs: 3000 };
    expect(await playOne(engine, threeTurns, { rollout })).toMatchObject({ status: 'ok' });
  });

  test('is no verdict of a process that stood still', async () => {
    const playing = playOne(engine, () => sleep(10_000, 1), {
      rollout: { attemptTimeoutMs: 50 },
      isFresh: () => false,
    });
    expect(await markOf(playing)).toMatchObject({ type: 'StaleAttempt' });
  });
});

describe('an internal error of the engine', () => {
  const INTERNAL = {
    status: 500,
    body: JSON.stringify({
      error: { type: 'EngineFailed', code: 'internal', message: 'failed on this request (KeyError); see its log' },
    }),
  };

  /** A budget that does not end a call, and waits that take no time. */
  const patient = () => ({ rollout: { callRetryBudgetMs: 60_000 }, clock: skippingClock() });

  test('that lasts 14 s, as of a GPU worker that restarts, is not seen by the agent', async () => {
    const options = patient();
    const start = options.clock.now();
    engine.failWhen(() => (options.clock.now() - start < 14_000 ? INTERNAL : null));
    expect(await playOne(engine, threeTurns, options)).toMatchObject({ status: 'ok', failure: null });
  });

  test('that stays for 15 s fails the attempt as data, in the engine’s words, whatever the agent returns', async () => {
    engine.failWhen(({ request }) => (request.messages[0]?.content === 'turn 1' ? INTERNAL : null));
    const options = patient();
    const start = options.clock.now();
    const attempts = await playAttempts(engine, swallowing, { attempts: 2, ...options });
    expect(options.clock.now() - start).toBeGreaterThanOrEqual(15_000);
    expect(attempts).toHaveLength(2);
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ status: 'failed', reward: null, failure: { type: 'AgentFailed' } });
      // Under a hash: the same wherever the engine was, and however often it was tried.
      expect(attempt.failure?.message).toBe(
        'the engine failed on a call, and on its retries for 15 s: failed on this request (KeyError); see its log',
      );
      expect(attempt.calls).toHaveLength(1);
    }
  });

  test('is tried at least four times, however long the engine was unavailable in between', async () => {
    engine.failNext(INTERNAL, { status: 503, headers: { 'retry-after': '20' } }, INTERNAL, { destroy: true }, INTERNAL);
    expect(await playOne(engine, threeTurns, patient())).toMatchObject({ status: 'ok' });
    engine.failNext(INTERNAL, { status: 503, headers: { 'retry-after': '20' } }, INTERNAL, INTERNAL, INTERNAL);
    expect(await playOne(engine, threeTurns, patient())).toMatchObject({ status: 'failed' });
  });

  test('is no data where an outage uses the budget up first', async () => {
    engine.failWhen((_call, received) => (received === 1 ? INTERNAL : { status: 503 }));
    expect(await markOf(playOne(engine, swallowing, { rollout: SHORT }))).toMatchObject({ type: 'EngineFailed' });
  });
});

test('a conversation that is too long to be sent has outgrown the model, as one that is too long to be read', async () => {
  engine.failNext({
    status: 413,
    body: JSON.stringify({ error: { type: 'BadConfig', code: 'too_large', message: 'a body must have …' } }),
  });
  expect(await playOne(engine, swallowing)).toMatchObject({ status: 'ok', reward: 0, truncated: true });
  expect(engine.received).toBe(1);
});
