/** Verdict on a group whose rewards were given from outside: a pure function of its attempts and its ledger. */
import type { ExternalConfig } from '../../../core/contract/contract.ts';
import { EXTERNAL, REVIEW } from '../../../core/rules/external-rewards.ts';
import { overlongCosts, type OverlongRules } from '../../../core/plan/shaped-rewards.ts';
import { lastRewards, type GivenRow, type LedgerRow } from './given-rewards.ts';
import { earnedByTurns, judgeTurns } from '../groups/group-result.ts';
import type { StoredRollouts } from '../groups/group-files.ts';
import { missingReviews, reviewScores } from './review-verdict.ts';
import type { AttemptRecord, Judged, Rollouts } from '../groups/trajectories.ts';

/** Rules by which a run takes given rewards. */
export interface GivenRules extends OverlongRules {
  readonly external: ExternalConfig;
  readonly minimumGroupSize: number;
}

/** Attempts that need a reward: those that did not fail. */
export function awaitedAttempts(attempts: readonly AttemptRecord[]): AttemptRecord[] {
  return attempts.filter(({ status }) => status === 'ok');
}

/** Those of them that the ledger has no reward for, or that reviewers have to answer further questions about. */
export function missingAttempts(
  rollouts: Rollouts,
  rows: readonly LedgerRow[],
  { review }: Pick<ExternalConfig, 'review'>,
): AttemptRecord[] {
  const awaited = awaitedAttempts(rollouts.attempts);
  if (review !== undefined) {
    const missing = missingReviews(rollouts, rows, review);
    return awaited.filter(({ attempt }) => missing.has(attempt));
  }
  const given = lastRewards(rows);
  return awaited.filter(({ attempt }) => !given.has(attempt));
}

/** Whole reward of an attempt that is given a value: added by weight to the agent's own, or in its place. */
export function rewardWith({ reward }: Pick<AttemptRecord, 'reward'>, value: number, external: ExternalConfig): number {
  const weights = external.review?.weights;
  if (weights !== undefined) return weights.review * value + weights.agent * (reward ?? 0);
  return external.name === undefined ? value : (reward ?? 0) + (external.weight ?? 1) * value;
}

/** Values alone: the same rewards give the same bytes, whoever gives them, and when. */
export function judgeByGiven(
  { rollouts, sha256 }: StoredRollouts,
  givenRows: readonly GivenRow[],
  rules: GivenRules,
): Judged {
  const { header, attempts } = rollouts;
  const { external } = rules;
  const given = valuesIn(rollouts, givenRows, external);
  const isComplete = missingAttempts(rollouts, givenRows, external).length === 0;
  const isUsed = isComplete || given.size >= (external.minimum ?? rules.minimumGroupSize);
  const values = attempts.map((record) => (isUsed ? valueOf(record, given.get(record.attempt), external) : null));
  return {
    schema: 1,
    inputsSha256: header.inputsSha256,
    rolloutsSha256: sha256,
    judge: external.review === undefined ? EXTERNAL : REVIEW,
    rewards: attempts.map((record, index) => {
      const value = values[index] ?? null;
      return value === null ? null : rewardWith(record, value, external);
    }),
    ...ownParts(attempts, values, external),
    ...overlongCosts(rules, attempts),
    explanations: attempts.map(() => null),
    ...metricsIn(attempts, values, givenRows),
    metrics: {},
  };
}

/** Given rewards, or scores of reviewers, by attempt. */
function valuesIn(rollouts: Rollouts, givenRows: readonly GivenRow[], { review }: ExternalConfig): Map<number, number> {
  if (review !== undefined) return reviewScores(rollouts, givenRows, review);
  return new Map([...lastRewards(givenRows)].map(([attempt, { reward }]) => [attempt, reward]));
}

/** Rewards of turns, where the agent's own reward counts, and the given values before their weights. */
function ownParts(
  attempts: readonly AttemptRecord[],
  values: readonly (number | null)[],
  { name, review }: ExternalConfig,
): Partial<Judged> {
  if (review !== undefined)
    return { ...judgeTurns(earnedByTurns(attempts), review.weights.agent), scores: [...values] };
  if (name === undefined) return {};
  const namedRewards = values.map((value) => (value === null ? null : { [name]: value }));
  return { ...judgeTurns(earnedByTurns(attempts)), namedRewards };
}

function metricsIn(
  attempts: readonly AttemptRecord[],
  values: readonly (number | null)[],
  givenRows: readonly GivenRow[],
): Partial<Judged> {
  const given = lastRewards(givenRows);
  const metrics = attempts.map(({ attempt }, index) => (values[index] === null ? null : given.get(attempt)?.metrics));
  return metrics.some(Boolean) ? { givenMetrics: metrics.map((each) => each ?? null) } : {};
}

/** Null: the attempt failed, or was dropped for want of a reward. */
function valueOf({ status }: AttemptRecord, given: number | undefined, { onTimeout }: ExternalConfig): number | null {
  return status === 'ok' ? (given ?? onTimeout ?? null) : null;
}
