/**
 * Rewards by name: an attempt's reward is their sum by the agent's weights. Each value is recorded as the metric
 * `reward/<name>`, so that whatever shows metrics shows it.
 */
import { isReward, REWARD_RULE } from './given-values.ts';
import { showValue } from '../contract/failures.ts';
import type { Metrics } from '../numbers/statistics.ts';

export type RewardWeights = Readonly<Record<string, number>>;
export type NamedRewards = Readonly<Record<string, number>>;

const PREFIX = 'reward/';

/** The judge of an agent that rewards its groups itself, as runs and verdicts name it. A model's name has a slash. */
export const REWARD_GROUP = 'rewardGroup';

export function isNamedReward(metric: string): boolean {
  return metric.startsWith(PREFIX);
}

/** In the order of the weights, whatever the order of the values: sums of floats depend on it. */
export function weighRewards(weights: RewardWeights, rewards: NamedRewards): number {
  const parts = Object.entries(weights).filter(([name]) => Object.hasOwn(rewards, name));
  return parts.reduce((sum, [name, weight]) => sum + weight * rewards[name]!, 0);
}

export function toRewardMetrics(rewards: NamedRewards): Record<string, number> {
  return Object.fromEntries(Object.entries(rewards).map(([name, value]) => [`${PREFIX}${name}`, value]));
}

/** The named rewards among metrics, and the rest of them. */
export function splitMetrics(metrics: Readonly<Metrics>): { rewards: NamedRewards; metrics: Metrics } {
  const all = Object.entries(metrics);
  const named = all.filter(([name]) => isNamedReward(name));
  return {
    rewards: Object.fromEntries(named.map(([name, value]) => [name.slice(PREFIX.length), Number(value)])),
    metrics: Object.fromEntries(all.filter(([name]) => !isNamedReward(name))),
  };
}

/** The mistake in rewards by name; null if there is none. `expected`: the names that must be there. */
export function findRewardsProblem(
  rewards: unknown,
  weights: RewardWeights,
  expected: readonly string[],
): string | null {
  const names = Object.keys(weights).join(', ');
  if (typeof rewards !== 'object' || rewards === null || Array.isArray(rewards))
    return `must have the rewards ${names} by name, got ${showValue(rewards)}`;
  const given = rewards as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(weights, name));
  if (unknown !== undefined) return `may have the rewards ${names}, got ${showValue(unknown)}, which has no weight`;
  const missing = expected.filter((name) => !Object.hasOwn(given, name));
  if (missing.length > 0) return `must have the rewards ${expected.join(', ')}, got none for ${missing.join(', ')}`;
  const wrong = Object.entries(given).find(([, value]) => !isReward(value));
  return wrong === undefined ? null : `must have as a reward ${REWARD_RULE}, got ${wrong[0]}: ${showValue(wrong[1])}`;
}
