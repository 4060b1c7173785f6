/** The pairs of a group, its scores by its reviewers, and what is still asked: pure functions of its attempts and its ledger. */
import type { ReviewConfig } from '../../../core/contract/contract.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import { planPairs } from '../../../core/numbers/pairs.ts';
import {
  comparedScores,
  meanScores,
  openPairs,
  scoresOf,
  type PairPlan,
  type ReviewRules,
} from '../../../core/numbers/review.ts';
import { deriveSeed } from '../../../core/numbers/seeds.ts';
import { givenIn, type LedgerRow } from './given-rewards.ts';
import { inPlayOrder, type AttemptRecord, type Rollouts } from '../groups/trajectories.ts';

export const comparisonsIn = (rows: readonly LedgerRow[]) => givenIn(rows).filter((row) => row.kind === 'comparison');
export const scoresIn = (rows: readonly LedgerRow[]) => givenIn(rows).filter((row) => row.kind === 'reward');

/** Attempts of open pairs, or with fewer scores than there must be reviewers. */
export function missingReviews(rollouts: Rollouts, rows: readonly LedgerRow[], review: ReviewConfig): Set<number> {
  if (review.pairwise) {
    const open = openPairs(planGroupPairs(rollouts, review), comparisonsIn(rows), review);
    return new Set(open.flatMap(({ left, right }) => [left, right]));
  }
  const scores = scoresOf(scoresIn(rows));
  const missing = rollouts.attempts.filter(({ attempt }) => (scores.get(attempt)?.size ?? 0) < review.reviewers);
  return new Set(missing.map(({ attempt }) => attempt));
}

/** Scores from 0 to 1 by attempt; attempts that nobody reviewed have none. */
export function reviewScores(
  rollouts: Rollouts,
  rows: readonly LedgerRow[],
  review: ReviewConfig,
): Map<number, number> {
  if (review.pairwise) return comparedScores(planGroupPairs(rollouts, review), comparisonsIn(rows));
  return meanScores(scoresIn(rows));
}

/** Attempts that say the same, word for word, are shown once. The hash of a group's inputs is the seed: no name is in it. */
export function planGroupPairs(
  { header, attempts }: Rollouts,
  rules: Pick<ReviewRules, 'comparisonsPerAttempt'>,
): PairPlan {
  const same = new Map<number, number[]>();
  const shown = new Map<string, number>();
  for (const record of attempts.filter(({ status }) => status === 'ok')) {
    const said = hashOf(saidIn(record));
    const first = shown.get(said) ?? record.attempt;
    shown.set(said, first);
    same.set(first, [...(same.get(first) ?? []), record.attempt]);
  }
  const seed = deriveSeed(['pairs', header.inputsSha256]);
  return { pairs: planPairs([...same.keys()], rules.comparisonsPerAttempt, seed), same };
}

/** Requests by their hashes, with the answers. */
function saidIn({ calls }: AttemptRecord): unknown[] {
  return inPlayOrder(calls).map(({ key, message }) => [key, message]);
}
