import { expect, test } from 'vitest';

import { planPairs, type Pair } from '../../../core/numbers/pairs.ts';

const CASES = [2, 3, 4, 5, 7, 8, 9, 16].flatMap((size) => [2, 3, 4, 5].map((degree) => ({ size, degree })));

test.each(CASES)('$size attempts with $degree comparisons each are connected, balanced pairs', ({ size, degree }) => {
  const attempts = Array.from({ length: size }, (_, index) => index * 3);
  const pairs = planPairs(attempts, degree, 1);
  const unordered = pairs.map(({ left, right }) => [left, right].toSorted((a, b) => a - b).join('-'));
  expect(new Set(unordered).size).toBe(pairs.length);
  expect(pairs.every(({ left, right }) => left !== right)).toBe(true);
  const wanted = Math.min(degree, size - 1);
  expect(pairs).toHaveLength(Math.ceil((size * wanted) / 2));
  for (const attempt of attempts) {
    const onLeft = pairs.filter(({ left }) => left === attempt).length;
    const onRight = pairs.filter(({ right }) => right === attempt).length;
    expect(onLeft + onRight).toBeGreaterThanOrEqual(wanted);
    expect(Math.abs(onLeft - onRight)).toBeLessThanOrEqual(1);
  }
  expect(reachable(pairs, 0)).toEqual(attempts);
});

test('the seed alone decides who meets whom, on which side and when', () => {
  const attempts = [0, 1, 2, 3, 4, 5, 6, 7];
  expect(planPairs(attempts, 3, 1)).toEqual(planPairs(attempts, 3, 1));
  expect(planPairs(attempts, 3, 1)).not.toEqual(planPairs(attempts, 3, 2));
  const onLeft = Array.from({ length: 200 }, (_, seed) => planPairs([0, 1], 2, seed)[0]!.left);
  expect(onLeft.filter((left) => left === 0).length).toBeGreaterThan(60);
  expect(onLeft.filter((left) => left === 1).length).toBeGreaterThan(60);
});

test('fewer than two attempts have no pairs', () => {
  expect(planPairs([], 3, 1)).toEqual([]);
  expect(planPairs([4], 3, 1)).toEqual([]);
});

function reachable(pairs: readonly Pair[], from: number): number[] {
  const found = new Set([from]);
  for (const _ of pairs)
    for (const { left, right } of pairs) if (found.has(left) || found.has(right)) found.add(left).add(right);
  return [...found].toSorted((a, b) => a - b);
}
