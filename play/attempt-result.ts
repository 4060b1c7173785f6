/** Results of rollouts, checked: the reward, as a number or by the weights of named rewards, and the metrics. */
import { badConfig, showValue } from '../core/contract/failures.ts';
import { findMetricNameProblem, isReward, REWARD_RULE } from '../core/rules/given-values.ts';
import {
  findRewardsProblem,
  isNamedReward,
  toRewardMetrics,
  weighRewards,
  type NamedRewards,
} from '../core/rules/named-rewards.ts';
import { type Metrics, mean } from '../core/numbers/statistics.ts';
import type { Agent } from './agent.ts';
import { checkTurnsOfExternal, isExternal } from './external.ts';
import { isRuler } from './judge/ruler.ts';
import { type RolePlayers, isRewarded, type RoleDefinitions } from './roles/role-definition.ts';

export type PlayedOutcome =
  | { reward: number | null; roleRewards?: Record<string, number>; metrics: Metrics }
  | { failure: string };

type Rewarding = Pick<Agent, 'reward' | 'rewards' | 'rewardGroup' | 'roles'>;

/** They are averaged over a step and go through the run's history: a value for each move belongs into the log. */
const MAX_METRICS = 100;

/** True if attempts may return no reward of their own: it comes from a judge alone, from `rewardGroup` or from outside. */
export function mayLackReward({ reward, rewardGroup }: Rewarding): boolean {
  if (rewardGroup !== undefined) return true;
  if (isExternal(reward)) return reward.review === undefined || reward.review.weights.agent === 0;
  return reward?.weights.agent === 0;
}

/** True if others than the rollout reward its attempts, alone or beside it. */
export function isGraded({ reward, rewardGroup }: Rewarding): boolean {
  return reward !== undefined || rewardGroup !== undefined;
}

/** Throws if turn rewards are no part of the reward. */
export function checkTurnsCount({ reward, roles }: Rewarding): void {
  if (roles !== undefined) {
    throw badConfig(
      'rewardTurn has no effect for an agent with roles, whose rewards belong to roles; return roleRewards, and remove the call',
    );
  }
  if (isExternal(reward)) checkTurnsOfExternal(reward);
  if (!isRuler(reward) || reward.weights.agent !== 0) return;
  throw badConfig(
    'rewardTurn has no effect when only the judge gives rewards; give the agent a weight in ruler({ weights }), or remove the call',
  );
}

interface Returned {
  reward?: unknown;
  rewards?: unknown;
  roleRewards?: unknown;
  metrics?: Record<string, unknown>;
}

/** `noted`: metrics that the rollout added while it played. `players`: those of an agent with roles. */
export function readResult(result: unknown, noted: Metrics, agent: Rewarding, players?: RolePlayers): PlayedOutcome {
  const returned = (typeof result === 'number' ? { reward: result } : (result ?? {})) as Returned;
  const rewarded = readRewards(returned, agent, players);
  if ('failure' in rewarded) return rewarded;
  const { named, ...rewards } = rewarded;
  const own = { ...noted, ...returned.metrics };
  const reserved = named === null ? undefined : Object.keys(own).find(isNamedReward);
  if (reserved !== undefined)
    return { failure: `metrics must not have the names of rewards, got ${reserved}; return it as a reward` };
  const all = { ...own, ...named };
  const complaint = findMetricNameProblem(Object.keys(own)) ?? findMetricsProblem(all);
  return complaint === null ? { ...rewards, metrics: all as Metrics } : { failure: complaint };
}

/** `named`: the metrics that rewards by name, or by role, are; null without any. */
type Rewarded =
  | { reward: number | null; roleRewards?: Record<string, number>; named: Metrics | null }
  | { failure: string };

function readRewards(returned: Returned, agent: Rewarding, players: RolePlayers | undefined): Rewarded {
  if (players !== undefined) {
    const ofRoles = readRoleRewards(returned.roleRewards, agent.roles ?? {}, players);
    if ('failure' in ofRoles) return ofRoles;
    const { metrics: named, ...rewards } = ofRoles;
    return { ...rewards, named };
  }
  return agent.rewards === undefined ? readReward(returned, agent) : readNamed(returned, agent.rewards, agent);
}

function readReward({ reward, rewards }: Returned, agent: Rewarding): Rewarded {
  if (rewards !== undefined)
    return { failure: 'rollout returned rewards by name, which have no weights; give the agent rewards: { name: 1 }' };
  if (reward === undefined && mayLackReward(agent)) return { reward: null, named: null };
  if (isReward(reward)) return { reward, named: null };
  return {
    failure: `rollout must return a reward, ${REWARD_RULE}, got ${showValue(reward)}; return a number or { reward, metrics }`,
  };
}

/** The one place where the reward of an attempt is made from its named rewards; `rewardGroup` adds to it. */
function readNamed({ reward, rewards }: Returned, weights: NamedRewards, agent: Rewarding): Rewarded {
  const awaited = isExternal(agent.reward) ? agent.reward.name : null;
  const names = Object.keys(weights).filter((name) => name !== awaited);
  const remedy = `return { rewards: { ${names.join(', ')} }, metrics }`;
  if (reward !== undefined)
    return { failure: `rollout must return its rewards by name, got ${showValue(reward)}; ${remedy}` };
  const isOptional = agent.rewardGroup !== undefined || names.length === 0;
  const given = rewards ?? (isOptional ? {} : undefined);
  const problem = findRewardsProblem(given, weights, isOptional ? [] : names);
  if (problem !== null) return { failure: `the result of rollout ${problem}; ${remedy}` };
  if (awaited !== null && Object.hasOwn(given as NamedRewards, awaited))
    return { failure: `rollout must not return the reward ${awaited}, which is given from outside; ${remedy}` };
  const sum = weighRewards(weights, given as NamedRewards);
  if (!isReward(sum)) return { failure: `the weighted sum of rewards must be ${REWARD_RULE}, got ${sum}; lower them` };
  return { reward: sum, named: toRewardMetrics(given as NamedRewards) };
}

function findMetricsProblem(all: Readonly<Record<string, unknown>>): string | null {
  const names = Object.keys(all);
  if (names.length > MAX_METRICS)
    return `an attempt may report ${MAX_METRICS} metrics, got ${names.length}; log other values instead`;
  const wrong = Object.entries(all).find(([, value]) => typeof value !== 'boolean' && !Number.isFinite(value));
  return wrong === undefined
    ? null
    : `metrics must be finite numbers or booleans, got ${wrong[0]}: ${showValue(wrong[1])}; remove it`;
}

/** `roleRewards` of a rollout's result: checked, and turned into the attempt's reward and metrics. */
interface RoleOutcome {
  /** Mean of the trained roles' rewards; null if the one that an evaluation shows did not play. */
  reward: number | null;
  roleRewards: Record<string, number>;
  /** `reward/ROLE` of each trained role. */
  metrics: Metrics;
}

function readRoleRewards(
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
