/** Defines an agent: `export default defineAgent({ name, scenarios, rollout })`. */
import { NAME_PATTERN } from '../../core/wire-constants.ts';
import { TemperError } from '../../core/failures.ts';
import {
  AGENT,
  type Agent,
  type AgentParts,
  type FinishedGroup,
  type JudgedResult,
  type NamedResult,
  type PartialResult,
  type PartialRewards,
  type RolloutContext,
  type RolloutResult,
  type Scenario,
} from '../../play/agent.ts';
import { checkOptions } from '../options/check-options.ts';
import { isRuler, type Ruler } from '../../play/judge/ruler.ts';
import { isResource, type NoResources, type Resources } from '../../play/resources/resource.ts';

/** Parts that every kind of agent has. */
interface Parts<S extends Scenario, R extends Resources> extends AgentParts<S> {
  /** `resource({ … })` by name: set up before the attempts, and ended after them. */
  resources?: R;
}

interface OwnRewards {
  reward?: never;
  rewards?: never;
  rewardGroup?: never;
}

export interface AgentDefinition<S extends Scenario, R extends Resources = NoResources>
  extends Parts<S, R>, OwnRewards {
  rollout(context: RolloutContext<S, R>): RolloutResult | Promise<RolloutResult>;
}

/** Its attempts are judged against each other, and trained with what the judge says. */
export interface JudgedAgentDefinition<S extends Scenario, R extends Resources = NoResources>
  extends Parts<S, R>, Omit<OwnRewards, 'reward'> {
  reward: Ruler;
  rollout(context: RolloutContext<S, R>): JudgedResult | Promise<JudgedResult>;
}

/** Its rollout returns each reward by name; the attempt's reward is their sum by these weights. */
export interface NamedRewardsDefinition<
  S extends Scenario,
  N extends string,
  R extends Resources = NoResources,
> extends Parts<S, R> {
  rewards: Readonly<Record<N, number>>;
  reward?: Ruler;
  rewardGroup?: never;
  rollout(context: RolloutContext<S, R>): NamedResult<N> | Promise<NamedResult<N>>;
}

/** Its function sees all attempts of a group, and returns the reward of each. */
export interface GroupRewardDefinition<S extends Scenario, R extends Resources = NoResources>
  extends Parts<S, R>, Omit<OwnRewards, 'rewardGroup'> {
  rewardGroup(group: FinishedGroup<S>): readonly number[] | Promise<readonly number[]>;
  rollout(context: RolloutContext<S, R>): JudgedResult | Promise<JudgedResult>;
}

/** Likewise by name: the function returns those rewards that the rollout did not. */
export interface NamedGroupRewardDefinition<
  S extends Scenario,
  N extends string,
  R extends Resources = NoResources,
> extends Parts<S, R> {
  rewards: Readonly<Record<N, number>>;
  reward?: never;
  rewardGroup(group: FinishedGroup<S>): readonly PartialRewards<N>[] | Promise<readonly PartialRewards<N>[]>;
  rollout(context: RolloutContext<S, R>): PartialResult<N> | Promise<PartialResult<N>>;
}

export function defineAgent<S extends Scenario, R extends Resources = NoResources, N extends string = string>(
  definition:
    | AgentDefinition<S, R>
    | JudgedAgentDefinition<S, R>
    | NamedRewardsDefinition<S, N, R>
    | GroupRewardDefinition<S, R>
    | NamedGroupRewardDefinition<S, N, R>,
): Agent<S> {
  const complaint = findProblem(checkOptions('defineAgent', definition));
  if (complaint !== null) throw new TemperError('BadConfig', complaint);
  return Object.freeze({ ...definition, [AGENT]: true as const });
}

/** A JavaScript caller may pass values of any type. */
function findProblem(definition: object): string | null {
  const { name, scenarios, evalScenarios, captureModel, resources, rollout } = definition as Record<string, unknown>;
  if (typeof name !== 'string' || !NAME_PATTERN.test(name)) {
    return `the agent's name must be lower case letters, digits and ._- (${NAME_PATTERN.source}), got ${shown(name)}; rename it`;
  }
  if (typeof rollout !== 'function')
    return `the agent ${name} must have a function rollout, got ${shown(rollout)}; add one`;
  const complaint = findRewardProblem(name, definition);
  if (complaint !== null) return complaint;
  if (captureModel !== undefined && (typeof captureModel !== 'string' || captureModel === ''))
    return `captureModel of the agent ${name} must be the name of a model, got ${shown(captureModel)}; pass the one that your code asks for`;
  const sources = { scenarios, ...(evalScenarios === undefined ? {} : { evalScenarios }) };
  const wrong = Object.entries(sources).find(([, source]) => !isSource(source));
  if (wrong === undefined) return findResourceProblem(name, resources);
  const kinds = 'a list, a generator, a function that returns one, a file URL or a path';
  return `${wrong[0]} of the agent ${name} must be ${kinds}, got ${shown(wrong[1])}; pass one of these`;
}

function findRewardProblem(name: string, definition: object): string | null {
  const { reward, rewards, rewardGroup } = definition as Record<string, unknown>;
  if (reward !== undefined && !isRuler(reward))
    return `the reward of the agent ${name} must be ruler({ … }), got ${shown(reward)}; return a reward of its own from rollout`;
  if (rewardGroup !== undefined && typeof rewardGroup !== 'function')
    return `rewardGroup of the agent ${name} must be a function, got ${shown(rewardGroup)}; pass one that returns a reward for each attempt`;
  if (reward !== undefined && rewardGroup !== undefined)
    return `the agent ${name} must have one judge, got reward and rewardGroup; call ruler(attempts, { … }) in rewardGroup`;
  if (rewards === undefined) return null;
  if (isRuler(reward) && reward.weights.agent === 0)
    return `rewards of the agent ${name} have no effect when only the judge gives rewards; give the agent a weight in ruler({ weights })`;
  return findWeightsProblem(name, rewards);
}

const REWARD_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
const MAX_REWARDS = 32;

function findWeightsProblem(agent: string, rewards: unknown): string | null {
  const remedy = 'pass for example { correct: 1, short: 0.1 }';
  const entries = typeof rewards === 'object' && rewards !== null ? Object.entries(rewards) : [];
  if (entries.length === 0 || entries.length > MAX_REWARDS || Array.isArray(rewards))
    return `rewards of the agent ${agent} must be 1 to ${MAX_REWARDS} weights by name, got ${shown(rewards)}; ${remedy}`;
  const misnamed = entries.find(([name]) => !REWARD_NAME.test(name));
  if (misnamed !== undefined)
    return `the name of a reward of the agent ${agent} must be letters, digits, _ and -, got ${shown(misnamed[0])}; rename it`;
  const wrong = entries.find(([, weight]) => typeof weight !== 'number' || !Number.isFinite(weight));
  if (wrong !== undefined)
    return `the weight of the reward ${wrong[0]} of the agent ${agent} must be a finite number, got ${shown(wrong[1])}; ${remedy}`;
  return entries.every(([, weight]) => weight === 0)
    ? `one of the rewards of the agent ${agent} must have another weight than 0, or nothing is learned; ${remedy}`
    : null;
}

/** Names that a property access may have. */
const RESOURCE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

function findResourceProblem(agent: string, resources: unknown = {}): string | null {
  if (typeof resources !== 'object' || resources === null || Array.isArray(resources))
    return `resources of the agent ${agent} must be resource({ … }) by name, got ${shown(resources)}; pass { database: resource({ … }) }`;
  for (const [name, value] of Object.entries(resources)) {
    if (!RESOURCE_NAME.test(name))
      return `a resource of the agent ${agent} must be named like a variable (${RESOURCE_NAME.source}), got ${shown(name)}; rename it`;
    if (!isResource(value))
      return `the resource ${name} of the agent ${agent} must be resource({ … }), got ${shown(value)}; pass resource({ scope, setup, teardown })`;
  }
  return null;
}

function isSource(source: unknown): boolean {
  if (typeof source === 'string') return source !== '';
  if (typeof source === 'function') return true;
  if (typeof source !== 'object' || source === null) return false;
  return source instanceof URL || Symbol.iterator in source || Symbol.asyncIterator in source;
}

function shown(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'function') return 'a function';
  return (JSON.stringify(value) ?? String(value)).slice(0, 80);
}
