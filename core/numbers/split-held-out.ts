/** Splits items into training and held-out ones so that both have all strata in the same proportions. */
import { deriveSeed, shuffle } from './seeds.ts';

/** The share of scenarios that is held out if the agent names none for evaluation. */
const HELD_OUT_SHARE = 0.1;

export function countHeldOut(scenarios: number, most: number): number {
  return Math.min(most, Math.max(1, Math.floor(scenarios * HELD_OUT_SHARE)));
}

/**
 * Indexes of a sample in the order of the list: drawn by the ids alone, so that every run and command that plays some of a
 * list plays the same ones. Values, one for each id, are taken in turn. A smaller sample is part of a larger one.
 */
export function drawSample(ids: readonly string[], count: number, values: readonly string[] = []): number[] {
  const order = ids
    .map((id, index) => ({ index, rank: deriveSeed(['sample', id]) }))
    .toSorted((a, b) => a.rank - b.rank);
  const taken = new Map<string | undefined, number>();
  const turns = order.map(({ index }) => {
    const turn = taken.get(values[index]) ?? 0;
    taken.set(values[index], turn + 1);
    return { index, turn };
  });
  return turns
    .toSorted((a, b) => a.turn - b.turn)
    .slice(0, count)
    .map(({ index }) => index)
    .toSorted((a, b) => a - b);
}

export interface HeldOutSplit<T> {
  readonly train: T[];
  readonly heldOut: T[];
}

/** Draws `count` items by seed, from each stratum its share; both parts keep the order of `items`. */
export function splitHeldOut<T>(
  items: readonly T[],
  { count, seed, stratumOf }: { count: number; seed: number; stratumOf: (item: T) => number },
): HeldOutSplit<T> {
  const strata = new Map<number, number[]>();
  for (const [index, item] of items.entries()) {
    const stratum = stratumOf(item);
    strata.set(stratum, [...(strata.get(stratum) ?? []), index]);
  }
  const shares = planShares(
    [...strata.entries()].toSorted(([a], [b]) => a - b),
    count / Math.max(1, items.length),
    count,
  );
  const drawn = new Set(
    shares.flatMap(({ stratum, indices, share }) =>
      shuffle(indices, deriveSeed([seed, 'held out', stratum])).slice(0, share),
    ),
  );
  return {
    train: items.filter((_, index) => !drawn.has(index)),
    heldOut: items.filter((_, index) => drawn.has(index)),
  };
}

/** Whole numbers by the largest remainders; of equal ones, the lower stratum gets the item. */
function planShares(strata: readonly (readonly [number, number[]])[], rate: number, count: number) {
  const exact = strata.map(([stratum, indices]) => ({ stratum, indices, exact: indices.length * rate }));
  const floor = exact.map((each) => ({ ...each, share: Math.floor(each.exact) }));
  const missing = count - floor.reduce((sum, { share }) => sum + share, 0);
  const byRemainder = floor.toSorted((a, b) => b.exact - b.share - (a.exact - a.share) || a.stratum - b.stratum);
  const raised = new Set(byRemainder.slice(0, missing).map(({ stratum }) => stratum));
  return floor.map((each) => ({ ...each, share: each.share + (raised.has(each.stratum) ? 1 : 0) }));
}
