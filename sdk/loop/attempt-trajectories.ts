/** The trajectories of one attempt: a single one, or one for each role that played. */
import { isNamedReward, toRewardMetrics } from '../../core/rules/named-rewards.ts';
import { mean, type Metrics } from '../../core/numbers/statistics.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { Trajectory } from './trajectory.ts';

/** Trajectories by attempt; those of an attempt by role, whatever order the script put them in. */
export type TrajectoriesByAttempt = ReadonlyMap<number, readonly Trajectory[]>;

export function byAttempt(gathered: readonly Trajectory[]): TrajectoriesByAttempt {
  const found = new Map<number, Trajectory[]>();
  for (const trajectory of inRoleOrder(gathered)) {
    const { attempt } = trajectory.origin!;
    found.set(attempt, [...(found.get(attempt) ?? []), trajectory]);
  }
  return found;
}

export function inRoleOrder(trajectories: readonly Trajectory[]): Trajectory[] {
  return trajectories.toSorted(({ role: one }, { role: other }) => ((one ?? '') < (other ?? '') ? -1 : 1));
}

/** Mean over roles; null if none is left. */
export function rewardOf(trajectories: readonly Trajectory[]): number | null {
  return mean(trajectories.map(({ totalReward }) => totalReward));
}

/** Undefined without roles. */
export function roleRewardsOf(trajectories: readonly Trajectory[]): Record<string, number> | undefined {
  const rewards = trajectories.flatMap(({ role, totalReward }) =>
    role === null ? [] : [[role, totalReward] as const],
  );
  return rewards.length === 0 ? undefined : Object.fromEntries(rewards);
}

/** With roles, `NAME/ROLE`. */
export function metricsOf(trajectories: readonly Trajectory[]): Metrics {
  return Object.fromEntries(
    trajectories.flatMap(({ role, metrics }) =>
      Object.entries(metrics).map(([name, value]) => [role === null ? name : `${name}/${role}`, value]),
    ),
  );
}

/** Metrics of one role in those of its attempt. */
export function metricsOfRole(metrics: Metrics, role: string): Metrics {
  const end = `/${role}`;
  const own = Object.entries(metrics).filter(([name]) => name.endsWith(end) && name !== `reward${end}`);
  return Object.fromEntries(own.map(([name, value]) => [name.slice(0, -end.length), value]));
}

/** Explanations of an attempt in one text. */
export function explanationOf(trajectories: readonly Trajectory[]): string | null {
  const lines = trajectories.flatMap(({ role, explanation }) =>
    explanation === null ? [] : [role === null ? explanation : `${role}: ${explanation}`],
  );
  return lines.length === 0 ? null : lines.join('\n');
}

/** An attempt's record with the rewards of its trajectories as they are now. */
export function withRewards<Recorded extends Pick<AttemptRecord, 'reward' | 'metrics'>>(
  record: Recorded,
  trajectories: readonly Trajectory[],
): Recorded & Pick<AttemptRecord, 'roleRewards'> {
  const roleRewards = roleRewardsOf(trajectories);
  const rewarded = { ...record, reward: rewardOf(trajectories) };
  if (roleRewards === undefined) return rewarded;
  const others = Object.entries(record.metrics).filter(([name]) => !isNamedReward(name));
  return { ...rewarded, roleRewards, metrics: { ...Object.fromEntries(others), ...toRewardMetrics(roleRewards) } };
}
