/** Scores of a group by its reviewers, and the questions that are still open: pure functions of its attempts and its ledger. */
import type { ReviewConfig } from '../../core/contract.ts';
import { comparedScores, meanScores, openPairs, scoresOf } from '../../core/review.ts';
import { giftsOf, type GivenRow } from './given-rewards.ts';
import { planGroupPairs } from './review-plan.ts';
import type { Rollouts } from './trajectories.ts';

export const comparisonsIn = (rows: readonly GivenRow[]) => giftsOf(rows).filter((row) => row.kind === 'comparison');
export const scoresIn = (rows: readonly GivenRow[]) => giftsOf(rows).filter((row) => row.kind === 'reward');

/** Attempts of open pairs, or with fewer scores than there must be reviewers. */
export function missingReviews(rollouts: Rollouts, rows: readonly GivenRow[], review: ReviewConfig): Set<number> {
  if (review.pairwise) {
    const open = openPairs(planGroupPairs(rollouts, review), comparisonsIn(rows), review);
    return new Set(open.flatMap(({ left, right }) => [left, right]));
  }
  const scores = scoresOf(scoresIn(rows));
  const missing = rollouts.attempts.filter(({ attempt }) => (scores.get(attempt)?.size ?? 0) < review.reviewers);
  return new Set(missing.map(({ attempt }) => attempt));
}

/** Scores from 0 to 1 by attempt; attempts that nobody reviewed have none. */
export function reviewScores(rollouts: Rollouts, rows: readonly GivenRow[], review: ReviewConfig): Map<number, number> {
  if (review.pairwise) return comparedScores(planGroupPairs(rollouts, review), comparisonsIn(rows));
  return meanScores(scoresIn(rows));
}
