/** Rewards by name, as a rollout or a program returns them: their weighted sum is the attempt's reward. */
import { expect, test } from 'vitest';

import type { RolloutContext } from '../../play/agent.ts';
import { playOne, type TestRollout } from './play.ts';
import { sharedEngine } from './shared-engine.ts';
import { ROLLOUT, script } from './program-script.ts';

const engine = await sharedEngine();

const rewards = { right: 1, short: 0.5, seen: 0 };
const returning = (result: unknown) => (() => result) as unknown as TestRollout;

test('the reward is the sum by the weights, and each reward is a metric beside the others', async () => {
  const result = { rewards: { short: 0.5, seen: 7, right: 1 }, metrics: { moves: 3 } };
  expect(await playOne(engine, returning(result), { rewards })).toMatchObject({
    status: 'ok',
    reward: 1.25,
    metrics: { moves: 3, 'reward/right': 1, 'reward/short': 0.5, 'reward/seen': 7 },
  });
});

test('what turns earned is added to the sum', async () => {
  const attempt = await playOne(
    engine,
    (async ({ openai, model, rewardTurn }: RolloutContext) => {
      const messages = [{ role: 'user' as const, content: 'x' }];
      rewardTurn(await openai.chat.completions.create({ model, messages }), 0.25);
      return { rewards: { right: 1, short: 1, seen: 0 } };
    }) as unknown as TestRollout,
    { rewards },
  );
  expect(attempt).toMatchObject({ reward: 1.75, metrics: { 'reward/right': 1 } });
});

test.each([
  [
    { rewards: { right: 1, seen: 1 } },
    /must have the rewards right, short, seen, got none for short; return \{ rewards/,
  ],
  [{ rewards: { right: 1, short: 1, seen: 1, late: 1 } }, /got "late", which has no weight/],
  [{ rewards: { right: 1, short: Infinity, seen: 1 } }, /got short: Infinity/],
  [
    { rewards: { right: 1e6, short: 1e6, seen: 1 } },
    /weighted sum of rewards must be a finite number from .*, got \d+/,
  ],
  [1, /must return its rewards by name, got 1; return \{ rewards: \{ right, short, seen \}, metrics \}/],
  [{ reward: 1, rewards: { right: 1, short: 1, seen: 1 } }, /must return its rewards by name, got 1/],
  [undefined, /must have the rewards right, short, seen by name, got undefined/],
  [{ rewards: { right: 1, short: 1, seen: 1 }, metrics: { 'reward/late': 1 } }, /must not have the names of rewards/],
])('%j is no reward: the attempt has failed, as data', async (result, message) => {
  const attempt = await playOne(engine, returning(result), { rewards });
  expect(attempt).toMatchObject({ status: 'failed', reward: null, metrics: {}, failure: { type: 'AgentFailed' } });
  expect(attempt.failure?.message).toMatch(message);
});

test('a program tells them as JSON', async () => {
  const told = script(`console.log('{"rewards": {"right": 1, "short": 0.5, "seen": 0}, "metrics": {"moves": 3}}')`);
  expect(await playOne(engine, told, { rewards, rollout: ROLLOUT })).toMatchObject({
    reward: 1.25,
    metrics: { moves: 3, 'reward/short': 0.5 },
  });
});
