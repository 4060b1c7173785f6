/** `roleRewards` of a rollout's result: checked, and turned into the attempt's reward and metrics. */
import { isReward, REWARD_RULE } from '../../core/given-values.ts';
import { showValue } from '../../core/show-value.ts';
import { mean, type Metrics } from '../../core/statistics.ts';
import { isRewarded, type RolePlayers, type RoleDefinitions } from './role-definition.ts';

export interface RoleOutcome {
  /** Mean of the trained roles' rewards; null if the one that an evaluation shows did not play. */
  reward: number | null;
  roleRewards: Record<string, number>;
  /** `reward/ROLE` of each trained role. */
  metrics: Metrics;
}

export function readRoleRewards(
  given: unknown,
  roles: RoleDefinitions,
  { trained }: RolePlayers,
): RoleOutcome | { failure: string } {
  const names = Object.keys(roles);
  const rewarded = names.filter((name) => isRewarded(roles[name]!));
  const shape = `return { roleRewards: { ${rewarded.map((name) => `${name}: …`).join(', ')} } }`;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return { failure: `rollout must return the rewards of its roles, got ${showValue(given)}; ${shape}` };
  const rewards = new Map(Object.entries(given));
  const unknown = [...rewards.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined)
    return { failure: `roleRewards may name the roles ${names.join(', ')}, got ${unknown}; ${shape}` };
  const wrong = names.find(
    (name) =>
      rewards.get(name) !== null && !isReward(rewards.get(name)) && (rewards.has(name) || rewarded.includes(name)),
  );
  if (wrong !== undefined)
    return {
      failure: `roleRewards.${wrong} must be ${REWARD_RULE}, or null if the role did not play, got ${showValue(rewards.get(wrong))}; ${shape}`,
    };
  const played = names.flatMap((name) =>
    typeof rewards.get(name) === 'number' ? [[name, Number(rewards.get(name))] as const] : [],
  );
  const own = played.filter(([name]) => Object.hasOwn(trained, name));
  if (!played.some(([name]) => roles[name]!.kind === 'policy'))
    return { failure: `roleRewards must have a number for a role that is trained, got null for all; ${shape}` };
  return {
    reward: mean(own.map(([, each]) => each)),
    roleRewards: Object.fromEntries(played),
    metrics: Object.fromEntries(own.map(([name, each]) => [`reward/${name}`, each])),
  };
}
