/**
 * How scenarios are dealt to groups: one endless deal, a fresh seeded permutation per epoch, so that a run sees each
 * scenario once before it sees one twice. A group's place in the deal is all that its scenario depends on.
 */
import { Remembered } from '../text/remembered.ts';
import { createRandom, deriveSeed } from '../numbers/seeds.ts';

export interface Deal {
  scenario: number;
  /** Number of complete passes over the set before. */
  epoch: number;
}

/** `count` scenarios from place `from` on. */
export function planDeal(seed: number, scenarios: number, from: number, count: number): Deal[] {
  const orderOf = (epoch: number): readonly number[] =>
    orders.get(`${seed} ${scenarios} ${epoch}`, () => permutation(scenarios, deriveSeed([seed, 'deal', epoch])));
  return Array.from({ length: count }, (_, offset) => {
    const epoch = Math.floor((from + offset) / scenarios);
    return { epoch, scenario: orderOf(epoch)[(from + offset) % scenarios] ?? 0 };
  });
}

/** Orders of the newest epochs. */
const orders = new Remembered<readonly number[]>();

/** Fisher–Yates over 0 … length − 1. */
export function permutation(length: number, seed: number): number[] {
  const order = Array.from({ length }, (_, index) => index);
  const random = createRandom(seed);
  for (let last = length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [order[last], order[other]] = [order[other] ?? 0, order[last] ?? 0];
  }
  return order;
}
