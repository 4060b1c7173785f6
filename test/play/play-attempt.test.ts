import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';

import type { RolloutContext, RolloutResult } from '../../play/agent.ts';
import { encodeRollouts } from '../../store/records/groups/trajectories.ts';
import { playAttempts, playOne, prepareAttempts, say, type TestRollout } from './play.ts';
import { sharedEngine, temporaryEngine } from './shared-engine.ts';

const engine = await sharedEngine();

test.each([[Number.NaN], [Infinity], ['1'], [undefined], [null], [{}], [{ reward: '1' }], [{ metrics: {} }]])(
  'the result %j is no reward: the attempt has failed, as data',
  async (result) => {
    const attempt = await playOne(engine, () => result as RolloutResult);
    expect(attempt).toMatchObject({ status: 'failed', reward: null, failure: { type: 'AgentFailed' } });
    expect(attempt.failure?.message).toContain('rollout must return a reward, a finite number');
  },
);

test.each([[Number.NaN], ['yes'], [null]])('the metric %j is refused by name', async (value) => {
  const attempt = await playOne(engine, () => ({ reward: 1, metrics: { moves: value as number } }));
  expect(attempt.failure?.message).toContain('moves');
});

test('a text that was cut in the middle of a character is asked and recorded with U+FFFD, not refused', async () => {
  const whole = 'Good night 🌙';
  const attempt = await playOne(engine, async (context) => {
    await say(context, whole);
    await say(context, whole.slice(0, -1));
    throw new Error(`no verdict on ${whole.slice(0, -1)}`);
  });
  const asked = engine.executed.slice(-2).map(({ request }) => request.messages[0]?.content);
  expect(asked).toEqual([whole, 'Good night \uFFFD']);
  expect(attempt).toMatchObject({ status: 'failed', calls: [{}, {}] });
  const lines = gunzipSync(await encodeRollouts({ header: {} as never, attempts: [attempt] })).toString();
  expect(lines).not.toMatch(/\\ud83c/);
  expect(lines).toContain('no verdict on Good night \uFFFD');
});

test('the line that threw is beside the record, and not in it', async () => {
  const throwing = prepareAttempts(engine, () => JSON.parse('<p>') as number, { folder: import.meta.dirname });
  expect(JSON.stringify(await throwing.play())).not.toContain('play-attempt.test.ts');
  expect(throwing.times()[0]?.thrownAt).toMatch(/^play-attempt\.test\.ts:\d+:\d+$/);
  const elsewhere = prepareAttempts(engine, () => JSON.parse('<p>') as number, { folder: '/elsewhere' });
  await elsewhere.play();
  expect(elsewhere.times()[0]).not.toHaveProperty('thrownAt');
});

test('metrics come from both ways, and logs are lines', async () => {
  const attempt = await playOne(engine, ({ metric, log }) => {
    metric('moves', 3);
    metric('win', false);
    log('board', { x: 1 }, 'after %d', 2);
    return { reward: 1, metrics: { win: true } };
  });
  expect(attempt.metrics).toEqual({ moves: 3, win: true });
  expect(attempt.logs).toEqual(['board { x: 1 } after %d 2']);
});

test('what an agent logs after its log is full is not even formatted', async () => {
  let formatted = 0;
  const costly = { [Symbol.for('nodejs.util.inspect.custom')]: () => `${++formatted}` };
  const attempt = await playOne(engine, ({ log }) => {
    for (let line = 0; line < 5000; line++) log(costly);
    return 1;
  });
  expect(attempt.logs.at(-1)).toBe('… 4800 more lines were left out');
  expect(formatted).toBe(201);
});

const EACH_MOVE = Object.fromEntries(Array.from({ length: 5000 }, (_, move) => [`move ${move}`, 1]));
test.each<[string, Record<string, number>, string]>([
  ['a metric for each move', EACH_MOVE, 'an attempt may report 100 metrics, got 5000'],
  ['a metric with a story for a name', { ['x'.repeat(1000)]: 1 }, 'printable text of 1 to 100 characters, got "xxx'],
  [
    'a metric of Temper',
    { exception_rate: 1 },
    'must not have reserved names, got exception_rate; rename it, as in my_',
  ],
  ['a metric of every object', { constructor: 1 }, 'must not have reserved names, got constructor'],
  ['a metric with a line break', { 'a\nb': 1 }, 'printable text of 1 to 100 characters, got "a\\nb"'],
])('%s is refused: metrics are averaged, and go through the run’s history', async (_, metrics, message) => {
  const attempt = await playOne(engine, () => ({ reward: 1, metrics }));
  expect(attempt).toMatchObject({ status: 'failed', failure: { type: 'AgentFailed' }, metrics: {} });
  expect(attempt.failure?.message).toContain(message);
});

test('random is the attempt’s own and repeats', async () => {
  const draw = () => playAttempts(engine, ({ random }) => random(), { attempts: 3 });
  const [first, again] = [await draw(), await draw()];
  expect(again).toEqual(first);
  expect(new Set(first.map(({ reward }) => reward)).size).toBe(3);
});

test('an attempt cannot change the scenario of its neighbours', async () => {
  const scenario = { id: 'one', board: ['x'] };
  const attempts = await playAttempts(engine, (context) => (context.scenario as typeof scenario).board.push('o'), {
    attempts: 3,
    scenario,
  });
  expect(attempts.map(({ reward }) => reward)).toEqual([2, 2, 2]);
});

test('the signal tells the agent that its attempt has ended', async () => {
  let told = false;
  const waiting: TestRollout = ({ signal }) => new Promise(() => signal.addEventListener('abort', () => (told = true)));
  await playOne(engine, waiting, { rollout: { attemptTimeoutMs: 30 } });
  expect(told).toBe(true);
});

describe('an attempt has no more than attemptTimeoutMs', () => {
  const rollout = { attemptTimeoutMs: 100, maxCallsPerAttempt: 100_000 };
  const MANY = 5000;
  const tooLong = 'an attempt may take attemptTimeoutMs 100 ms, it took longer';

  test.each([1, 3])('where the agent asks without a pause, %d calls at a time', async (lanes) => {
    const asking = async (context: RolloutContext) => {
      const lane = async (of: number) => {
        for (let call = 0; call < MANY; call++) await say(context, `${of}.${call}`);
      };
      await Promise.all(Array.from({ length: lanes }, (_, index) => lane(index)));
      return 1;
    };
    const attempt = await playOne(engine, asking, { rollout });
    expect(attempt).toMatchObject({ status: 'failed', reward: null, failure: { message: tooLong } });
    // Well below what the agent would have gone on for.
    expect(attempt.calls.length).toBeLessThan(lanes * MANY);
  });

  test('and a call that was sent in time is answered', async () => {
    const slow = await temporaryEngine({ delayMs: 2000 });
    // Time enough to send it on a busy machine, and too little for its answer.
    const sent = { ...rollout, attemptTimeoutMs: 1000, callTimeoutMs: 30_000 };
    const attempt = await playOne(slow, async (context) => (await say(context, 'x')).length, { rollout: sent });
    expect(attempt).toMatchObject({ status: 'ok', calls: [{}] });
  });
});
