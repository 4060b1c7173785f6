/** Two policies on the same held-out scenarios: paired by scenario, so that a scenario's difficulty cancels out. Pure. */
import { estimateMean, type Estimate } from './statistics.ts';

/** An attempt of an evaluation; null: it failed. */
export interface Scored {
  readonly attempt: number;
  readonly reward: number | null;
}

/** Reward of each attempt minus that of the same attempt of `first`; those that failed on either side are left out. */
export function pairedDifferences(attempts: readonly Scored[], first: readonly Scored[]): number[] {
  const rewards = new Map(first.map(({ attempt, reward }) => [attempt, reward]));
  return attempts.flatMap(({ attempt, reward }) => {
    const other = rewards.get(attempt) ?? null;
    return reward === null || other === null ? [] : [reward - other];
  });
}

/** Fewer say nothing about how far their mean may be off. */
const FEWEST_PAIRS = 2;

export interface PairedComparison {
  /** Mean difference with its 95 % interval; null with fewer than two pairs. */
  readonly difference: Estimate | null;
  readonly pairs: number;
  /** Why the newer policy must not be promoted; null if it may be. */
  readonly problem: string | null;
}

/** Refuses a policy that is significantly worse: the whole 95 % interval of its paired difference is below 0. */
export function compareEvaluations(newer: readonly Scored[], older: readonly Scored[]): PairedComparison {
  const differences = pairedDifferences(newer, older);
  const pairs = differences.length;
  if (pairs < FEWEST_PAIRS) {
    const rule = `at least ${FEWEST_PAIRS} held-out scenarios must have a reward by both policies, got ${pairs}`;
    return { difference: null, pairs, problem: rule };
  }
  const difference = estimateMean(differences);
  return { difference, pairs, problem: difference.high < 0 ? describeWorse(difference, pairs) : null };
}

const DIGITS = 3;

function describeWorse({ mean, low, high }: Estimate, pairs: number): string {
  const interval = `${low.toFixed(DIGITS)} to ${high.toFixed(DIGITS)}`;
  return `its reward on ${pairs} held-out scenarios is significantly lower, by ${(-mean).toFixed(DIGITS)} (95 % interval of the paired difference: ${interval})`;
}
