/** Agents as they come: whatever one attempt does, it is data, it costs what its limits say, and its neighbours play on. */
import { expect, test } from 'vitest';

import type { RolloutContext, RolloutResult } from '../../play/agent.ts';
import { rolloutsKey } from '../../store/layout.ts';
import { decodeRollouts } from '../../store/records/groups/trajectories.ts';
import { ROLLOUT, say } from '../play/play.ts';
import { call, openWorld, rolloutInput } from './world.ts';

type Play = (context: RolloutContext) => RolloutResult | Promise<RolloutResult>;

/** Two good attempts beside each bad one: a group that can be trained. */
async function playBeside(bad: Play, rollout = ROLLOUT) {
  let attempt = 0;
  const world = await openWorld({
    async rollout(context) {
      const mine = attempt++;
      if (mine === 1) return bad(context);
      await say(context, `attempt ${mine}`);
      return mine;
    },
  });
  const input = { ...(await rolloutInput(world.store, { attempts: 3 })), rollout };
  const result = await call(world.activities.rollout, input);
  const stored = (await world.store.read(rolloutsKey(input)))!;
  const { attempts } = await decodeRollouts(stored, 'stored');
  return { world, result, bad: attempts[1]!, bytes: stored.length };
}

const SHORT = { ...ROLLOUT, attemptTimeoutMs: 3000 };
/** For agents that keep the event loop busy for seconds: their neighbours are not what is tried. */
const UNHURRIED = { ...ROLLOUT, attemptTimeoutMs: 60_000, callTimeoutMs: 30_000, callRetryBudgetMs: 60_000 };

test.each<[string, Play, string]>([
  ['throws', () => Promise.reject(new RangeError('lost the plot')), 'RangeError: lost the plot'],
  ['throws something that is no error', () => Promise.reject('no'), 'threw "no"'],
  [
    'returns nothing',
    () => undefined as never,
    'rollout must return a reward, a finite number from -1000000 to 1000000, got undefined',
  ],
  [
    'returns no reward',
    () => ({ metrics: { moves: 3 } }) as never,
    'rollout must return a reward, a finite number from -1000000 to 1000000',
  ],
  ['returns NaN', () => Number.NaN, 'rollout must return a reward, a finite number from -1000000 to 1000000, got NaN'],
  ['returns the largest number', () => -Number.MAX_VALUE, 'to 1000000, got -1.7976931348623157e+308'],
  [
    'reports a metric of Temper',
    () => ({ reward: 1, metrics: { reward: 1 } }),
    'must not have reserved names, got reward; rename',
  ],
  [
    'returns infinity',
    () => ({ reward: -Infinity }),
    'rollout must return a reward, a finite number from -1000000 to 1000000, got -Infinity',
  ],
  ['never returns', () => new Promise<number>(() => undefined), 'an attempt may take attemptTimeoutMs 3000 ms'],
])('an agent that %s: the attempt has failed, and the group is trained without it', async (_, play, message) => {
  const { result, bad } = await playBeside(play, SHORT);
  expect(result).toMatchObject({ use: 'trained', failed: 1, rewards: [0, 2] });
  expect(bad).toMatchObject({ status: 'failed', reward: null, failure: { type: 'AgentFailed' } });
  expect(bad.failure?.message).toContain(message);
});

test.each<[string, Play]>([
  [
    'one after the other, whatever the answer',
    async (context) => {
      for (let turn = 0; turn < 2_000 && !context.signal.aborted; turn++) {
        await say(context, `turn ${turn}`).catch(() => 'swallowed');
      }
      return 1;
    },
  ],
  [
    'all at once',
    async (context) => {
      await Promise.allSettled(Array.from({ length: 2_000 }, (_, turn) => say(context, `turn ${turn}`)));
      return 1;
    },
  ],
])('an agent that calls the model 2,000 times, %s, is stopped at maxCallsPerAttempt', async (_, play) => {
  const { world, result, bad } = await playBeside(play, { ...UNHURRIED, maxCallsPerAttempt: 12 });
  expect(result).toMatchObject({ use: 'trained', failed: 1 });
  expect(bad.failure?.message).toBe('an attempt may make maxCallsPerAttempt 12 calls, it asked for one more');
  // The two good attempts ask once each.
  expect(world.engine.received).toBeLessThanOrEqual(12 + 2);
});

test('an agent that logs a gigabyte has kept the beginning, and says how much is missing', async () => {
  const piece = 'x'.repeat(2 ** 20);
  const { result, bad, bytes } = await playBeside(async (context) => {
    for (let line = 0; line < 1024; line++) context.log(piece);
    await say(context, 'loud');
    return 5;
  });
  expect(result).toMatchObject({ use: 'trained', failed: 0, rewards: [0, 5, 2] });
  expect(bad.logs[0]).toMatch(/^x{4000} … \(1044576 more characters\)$/);
  expect(bad.logs.at(-1)).toBe('… 1020 more lines were left out');
  expect(bytes).toBeLessThan(20_000);
});

test('an agent whose every attempt fails leaves a group that is not trained, counted', async () => {
  const world = await openWorld({ rollout: () => Promise.reject(new Error('not today')) });
  const result = await call(world.activities.rollout, await rolloutInput(world.store));
  expect(result).toMatchObject({ use: 'too-few-attempts', failed: 6, rewards: [] });
});
