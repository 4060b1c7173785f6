import { expect, test } from 'vitest';
import { findRewardsProblem, splitMetrics, toRewardMetrics, weighRewards } from '../../../core/rules/named-rewards.ts';

test('the sum has the order of the weights, so that the order of the values changes no bit of it', () => {
  const weights = { a: 0.1, b: 0.2, c: 0.3 };
  expect(weighRewards(weights, { a: 1, b: 1, c: 1 })).toBe(weighRewards(weights, { c: 1, b: 1, a: 1 }));
  expect(weighRewards(weights, { c: 2 })).toBe(0.6);
  expect(weighRewards({ good: 1, cost: -0.5, shown: 0 }, { good: 1, cost: 0.5, shown: 100 })).toBe(0.75);
});

test('named rewards are metrics, and found among them again', () => {
  const metrics = { moves: 3, ...toRewardMetrics({ right: 1, short: 0.4 }), win: true };
  expect(metrics).toEqual({ moves: 3, 'reward/right': 1, 'reward/short': 0.4, win: true });
  expect(splitMetrics(metrics)).toEqual({ rewards: { right: 1, short: 0.4 }, metrics: { moves: 3, win: true } });
});

const weights = { right: 1, short: 0.1 };
test.each([
  [{ right: 1, short: 1 }, null],
  [{ right: 1 }, 'must have the rewards right, short, got none for short'],
  [{ right: 1, shrt: 1 }, 'may have the rewards right, short, got "shrt", which has no weight'],
  [{ right: 1, short: 1, toString: 1 }, 'may have the rewards right, short, got "toString", which has no weight'],
  [{ right: 1, short: Number.NaN }, 'must have as a reward a finite number from -1000000 to 1000000, got short: NaN'],
  [{ right: true, short: 1 }, 'must have as a reward a finite number from -1000000 to 1000000, got right: true'],
  [{ right: '1', short: 1 }, 'must have as a reward a finite number from -1000000 to 1000000, got right: "1"'],
  [[1, 1], 'must have the rewards right, short by name, got [1,1]'],
  [undefined, 'must have the rewards right, short by name, got undefined'],
])('of the rewards %j it says: %s', (rewards, problem) => {
  expect(findRewardsProblem(rewards, weights, Object.keys(weights))).toBe(problem);
});
