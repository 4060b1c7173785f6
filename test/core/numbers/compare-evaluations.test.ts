import { expect, test } from 'vitest';

import { compareEvaluations } from '../../../core/numbers/compare-evaluations.ts';

/** Rewards in the order of the scenarios; null: the attempt failed. */
const scored = (rewards: readonly (number | null)[]) => rewards.map((reward, attempt) => ({ attempt, reward }));
const OLDER = scored(Array.from({ length: 40 }, (_, index) => index % 2));

test('the same rewards, better ones and slightly worse ones are no problem', () => {
  expect(compareEvaluations(OLDER, OLDER)).toMatchObject({ pairs: 40, problem: null, difference: { mean: 0 } });
  expect(compareEvaluations(scored(OLDER.map(() => 1)), OLDER).problem).toBeNull();
  // One of forty.
  expect(
    compareEvaluations(scored(OLDER.map(({ reward }, index) => (index === 1 ? 0 : reward))), OLDER).problem,
  ).toBeNull();
});

test('a policy whose whole interval is below 0 is refused, with the numbers', () => {
  const { problem } = compareEvaluations(scored(OLDER.map(({ reward }, index) => (index < 16 ? 0 : reward))), OLDER);
  expect(problem).toBe(
    'its reward on 40 held-out scenarios is significantly lower, by 0.200 (95 % interval of the paired difference: -0.326 to -0.074)',
  );
});

test('pairs are by scenario, whatever the order, without those that failed on either side', () => {
  const newer = scored([1, null, 0, 1]).toReversed();
  expect(compareEvaluations(newer, scored([1, 1, 0, null]))).toMatchObject({ pairs: 2, problem: null });
});

test('a policy that cannot be compared is refused', () => {
  expect(compareEvaluations(scored([null, 1]), scored([1, 1])).problem).toBe(
    'at least 2 held-out scenarios must have a reward by both policies, got 1',
  );
});
