/** Verdict on a group whose rewards were given from outside: a pure function of its attempts and its ledger. */
import type { ExternalConfig } from '../../core/contract.ts';
import { EXTERNAL } from '../../core/external-rewards.ts';
import { overlongCosts, type OverlongRules } from '../../core/shaped-rewards.ts';
import { lastRewards, type Gift, type GivenRow, type RewardRow } from './given-rewards.ts';
import { earnedByTurns, judgeTurns } from './group-result.ts';
import type { StoredRollouts } from './group-files.ts';
import type { AttemptRecord, Judged } from './trajectories.ts';

/** Rules by which a run takes given rewards. */
export interface GivenRules extends OverlongRules {
  readonly external: ExternalConfig;
  readonly minimumGroupSize: number;
}

/** Attempts that need a reward: those that did not fail. */
export function awaitedAttempts(attempts: readonly AttemptRecord[]): AttemptRecord[] {
  return attempts.filter(({ status }) => status === 'ok');
}

/** Those of them that the ledger has no reward for. */
export function missingAttempts(attempts: readonly AttemptRecord[], rows: readonly GivenRow[]): AttemptRecord[] {
  const given = lastRewards(rows);
  return awaitedAttempts(attempts).filter(({ attempt }) => !given.has(attempt));
}

/** Whole reward of an attempt that is given a value: added by weight to the agent's own, or in its place. */
export function rewardWith({ reward }: Pick<AttemptRecord, 'reward'>, value: number, external: ExternalConfig): number {
  return external.name === undefined ? value : (reward ?? 0) + (external.weight ?? 1) * value;
}

/** Values alone: the same rewards give the same bytes, whoever gives them, and when. */
export function judgeByGiven({ rollouts, sha256 }: StoredRollouts, gifts: readonly Gift[], rules: GivenRules): Judged {
  const { header, attempts } = rollouts;
  const { external } = rules;
  const given = lastRewards(gifts);
  const isComplete = missingAttempts(attempts, gifts).length === 0;
  const isUsed = isComplete || given.size >= (external.minimum ?? rules.minimumGroupSize);
  const values = attempts.map((record) => (isUsed ? valueOf(record, given.get(record.attempt), external) : null));
  const metrics = attempts.map(({ attempt }, index) => (values[index] === null ? null : given.get(attempt)?.metrics));
  return {
    schema: 1,
    inputsSha256: header.inputsSha256,
    rolloutsSha256: sha256,
    judge: EXTERNAL,
    rewards: attempts.map((record, index) => {
      const value = values[index] ?? null;
      return value === null ? null : rewardWith(record, value, external);
    }),
    ...(external.name !== undefined && {
      ...judgeTurns(earnedByTurns(attempts)),
      namedRewards: values.map((value) => (value === null ? null : { [external.name!]: value })),
    }),
    ...overlongCosts(rules, attempts),
    explanations: attempts.map(() => null),
    ...(metrics.some(Boolean) && { givenMetrics: metrics.map((each) => each ?? null) }),
    metrics: {},
  };
}

/** Null: the attempt failed, or was dropped for want of a reward. */
function valueOf({ status }: AttemptRecord, row: RewardRow | undefined, { onTimeout }: ExternalConfig): number | null {
  return status === 'ok' ? (row?.reward ?? onTimeout ?? null) : null;
}
