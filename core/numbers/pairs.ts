/** Which attempts of a group a reviewer compares with which. Pure. */
import { shuffle } from './seeds.ts';

/** Two attempts of a group by their numbers, and the side on which each is shown. */
export interface Pair {
  readonly left: number;
  readonly right: number;
}

/** One comparison of each attempt leaves a group in parts, between which nothing is known. */
export const LEAST_COMPARISONS = 2;

/**
 * Pairs in the order in which they are reviewed. Each attempt is in at least `comparisonsPerAttempt` of them (or meets
 * every other one), all attempts are connected, and each is on the left as often as on the right, but for one pair.
 *
 * The attempts stand in a circle, in an order drawn by the seed: each meets the next one, the one after that, and so on,
 * which makes a connected graph of even degree. An odd degree adds the attempt on the opposite side.
 */
export function planPairs(attempts: readonly number[], comparisonsPerAttempt: number, seed: number): Pair[] {
  const circle = shuffle(attempts, seed);
  const size = circle.length;
  const degree = Math.min(comparisonsPerAttempt, size - 1);
  const pairs: Pair[] = [];
  const add = (from: number, distance: number): void => {
    pairs.push({ left: circle[from % size]!, right: circle[(from + distance) % size]! });
  };
  for (let distance = 1; distance <= Math.floor(degree / 2); distance++)
    for (let from = 0; from < size; from++) add(from, distance);
  if (degree % 2 === 1) for (const from of opposites(size)) add(from, Math.floor(size / 2));
  return shuffle(pairs, seed);
}

/** Places of a circle from which half the way round meets every place; one place twice if their number is odd. */
function opposites(size: number): number[] {
  const half = Math.floor(size / 2);
  if (size % 2 === 0) return Array.from({ length: half }, (_, place) => (place % 2 === 0 ? place : place + half));
  // Half the way, taken again and again, passes every place of an odd circle: every second of these walks is taken.
  return Array.from({ length: half + 1 }, (_, walk) => (2 * walk * half) % size);
}
