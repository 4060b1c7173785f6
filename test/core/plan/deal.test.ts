import { expect, test } from 'vitest';

import { permutation, planDeal } from '../../../core/plan/deal.ts';

function order(seed: number, epoch: number): number[] {
  return planDeal(seed, 20, 20 * epoch, 20).map(({ scenario }) => scenario);
}

test('every scenario is dealt once per epoch', () => {
  const deals = planDeal(1, 7, 0, 21);
  for (const epoch of [0, 1, 2]) {
    const dealt = deals.filter((deal) => deal.epoch === epoch).map(({ scenario }) => scenario);
    expect(dealt.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  }
});

test('epochs and seeds are dealt in orders of their own', () => {
  expect(order(1, 0)).not.toEqual(order(1, 1));
  expect(order(1, 0)).not.toEqual(order(2, 0));
  expect(order(1, 0)).toEqual(order(1, 0));
});

test('a deal depends on its place alone, not on how many are dealt at once', () => {
  const whole = planDeal(3, 5, 0, 12);
  const pieces = [...planDeal(3, 5, 0, 4), ...planDeal(3, 5, 4, 1), ...planDeal(3, 5, 5, 7)];
  expect(pieces).toEqual(whole);
});

test('one scenario is dealt again and again', () => {
  expect(planDeal(1, 1, 0, 3)).toEqual([0, 1, 2].map((epoch) => ({ epoch, scenario: 0 })));
});

test('permutations are fair: each place gets each value about as often', () => {
  const counts = Array.from({ length: 4 }, () => [0, 0, 0, 0]);
  for (let seed = 0; seed < 4000; seed++) {
    for (const [place, value] of permutation(4, seed * 7919).entries()) counts[place]![value]! += 1;
  }
  for (const count of counts.flat()) expect(Math.abs(count - 1000)).toBeLessThan(150);
});
