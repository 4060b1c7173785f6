import { expect, test } from 'vitest';

import { scoreComparisons, type PairAnswer, type Comparison } from '../../../core/numbers/bradley-terry.ts';

test('one comparison: the winner gets the root of x³ − x² − x = 3, by hand', () => {
  // Strengths x and 1/x by symmetry; 1.5 wins = x/(x + 1/x) + x/(x + 1), so x = 2.13040, and x²/(x² + 1) = 0.819…
  const scores = scoreComparisons([met(0, 1, 'left')]);
  const x = 2.130395;
  expect(x ** 3 - x ** 2 - x).toBeCloseTo(3, 4);
  expect(scores.get(0)).toBeCloseTo(x ** 2 / (x ** 2 + 1), 5);
  expect(scores.get(1)).toBeCloseTo(1 / (x ** 2 + 1), 5);
  expect(scores.get(0)! + scores.get(1)!).toBeCloseTo(1, 6);
});

test('the side on which the winner stood does not matter', () => {
  expect(scoreComparisons([met(1, 0, 'right'), met(0, 2, 'left')])).toEqual(
    scoreComparisons([met(0, 1, 'left'), met(2, 0, 'right')]),
  );
});

test('ties and circles are exactly equal, so a group without preferences has no variance', () => {
  const tied = scoreComparisons([met(0, 1, 'equal'), met(1, 2, 'equal'), met(2, 0, 'equal')]);
  expect([...tied.values()]).toEqual([0.5, 0.5, 0.5]);
  const circle = scoreComparisons([met(0, 1, 'left'), met(1, 2, 'left'), met(2, 0, 'left')]);
  expect([...circle.values()]).toEqual([0.5, 0.5, 0.5]);
});

test('scores stand in the order of the answers, and their mean is a half', () => {
  const comparisons = [met(3, 0, 'left'), met(1, 3, 'right'), met(0, 2, 'left'), met(1, 2, 'equal')];
  const scores = scoreComparisons(comparisons);
  expect([...scores.keys()]).toEqual([0, 1, 2, 3]);
  const order = [...scores].toSorted(([, a], [, b]) => b - a).map(([attempt]) => attempt);
  expect(order).toEqual([3, 0, 1, 2]);
  const sum = [...scores.values()].reduce((total, score) => total + score, 0);
  expect(sum / 4).toBeCloseTo(0.5, 5);
});

test('who won against strong attempts scores more than who won as often against weak ones', () => {
  // 0 and 1 are strong (each beat 4 and 5); 2 beat the strong 0, and 3 the weak 4. A share of wins would not tell them apart.
  const comparisons = [
    ...[4, 5].flatMap((weak) => [met(0, weak, 'left'), met(1, weak, 'left')]),
    met(2, 0, 'left'),
    met(3, 4, 'left'),
  ];
  const scores = scoreComparisons(comparisons);
  expect(scores.get(2)).toBeGreaterThan(scores.get(3)!);
  expect([...scores.values()].every((score) => score > 0 && score < 1)).toBe(true);
});

test('more answers for the same winner raise its score, and nothing reaches 1', () => {
  const once = scoreComparisons([met(0, 1, 'left')]).get(0)!;
  const often = scoreComparisons(Array.from({ length: 9 }, () => met(0, 1, 'left'))).get(0)!;
  expect(often).toBeGreaterThan(once);
  expect(often).toBeLessThan(1);
});

test('the order of answers does not matter', () => {
  const comparisons = [met(0, 1, 'left'), met(1, 2, 'right'), met(2, 3, 'equal'), met(3, 0, 'left')];
  expect(scoreComparisons(comparisons.toReversed())).toEqual(scoreComparisons(comparisons));
});

function met(left: number, right: number, answer: PairAnswer): Comparison {
  return { left, right, answer };
}
