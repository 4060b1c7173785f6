/** Defines an agent: `export default defineAgent({ name, scenarios, rollout })`. */
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
import { checkAgent } from './check-agent.ts';
import type { External } from '../../play/external.ts';
import type { Ruler } from '../../play/judge/ruler.ts';
import type { NoResources, Resources } from '../../play/resources/resource.ts';
import type { RoleDefinitions, RoleResult } from '../../play/roles/role-definition.ts';
import type { ModelClient } from '../../play/transports/model-client.ts';

/** Parts that every kind of agent has. */
interface Parts<S extends Scenario, R extends Resources> extends AgentParts<S> {
  /** `resource({ … })` by name: set up before the attempts, and ended after them. */
  resources?: R;
}

/** Parts of an agent that one policy plays. */
interface OnePolicy<S extends Scenario, R extends Resources> extends Parts<S, R> {
  roles?: never;
  competing?: never;
}

/** Without rewards other than those that the rollout returns. */
interface OwnRewards {
  reward?: never;
  rewards?: never;
  rewardGroup?: never;
}

export interface AgentDefinition<S extends Scenario, R extends Resources = NoResources>
  extends OnePolicy<S, R>, OwnRewards {
  rollout(context: RolloutContext<S, R>): RolloutResult | Promise<RolloutResult>;
}

/** Its attempts are judged against each other, and trained with what the judge says. */
export interface JudgedAgentDefinition<S extends Scenario, R extends Resources = NoResources>
  extends OnePolicy<S, R>, Omit<OwnRewards, 'reward'> {
  reward: Ruler;
  rollout(context: RolloutContext<S, R>): JudgedResult | Promise<JudgedResult>;
}

/** Its attempts are rewarded later, from outside; what the rollout returns is a metric, and the reward of evaluations. */
export interface ExternalAgentDefinition<S extends Scenario, R extends Resources = NoResources>
  extends OnePolicy<S, R>, Omit<OwnRewards, 'reward'> {
  reward: External<never>;
  rollout(context: RolloutContext<S, R>): JudgedResult | Promise<JudgedResult>;
}

/** Likewise for one reward by name: the rollout returns the others. */
export interface NamedExternalDefinition<
  S extends Scenario,
  N extends string,
  E extends N,
  R extends Resources = NoResources,
> extends OnePolicy<S, R> {
  rewards: Readonly<Record<N, number>>;
  reward: External<E>;
  rewardGroup?: never;
  rollout(context: RolloutContext<S, R>): OtherResult<N, E> | Promise<OtherResult<N, E>>;
}

/** Nothing has to be returned if there is no other reward. */
type OtherResult<N extends string, E extends N> = [Exclude<N, E>] extends [never]
  ? JudgedResult
  : NamedResult<Exclude<N, E>> & { rewards: { [Name in E]?: never } };

/** Its rollout returns each reward by name; the attempt's reward is their sum by these weights. */
export interface NamedRewardsDefinition<
  S extends Scenario,
  N extends string,
  R extends Resources = NoResources,
> extends OnePolicy<S, R> {
  rewards: Readonly<Record<N, number>>;
  reward?: Ruler;
  rewardGroup?: never;
  rollout(context: RolloutContext<S, R>): NamedResult<N> | Promise<NamedResult<N>>;
}

/** Its function sees all attempts of a group, and returns the reward of each. */
export interface GroupRewardDefinition<S extends Scenario, R extends Resources = NoResources>
  extends OnePolicy<S, R>, Omit<OwnRewards, 'rewardGroup'> {
  rewardGroup(group: FinishedGroup<S>): readonly number[] | Promise<readonly number[]>;
  rollout(context: RolloutContext<S, R>): JudgedResult | Promise<JudgedResult>;
}

/** Likewise by name: the function returns those rewards that the rollout did not. */
export interface NamedGroupRewardDefinition<
  S extends Scenario,
  N extends string,
  R extends Resources = NoResources,
> extends OnePolicy<S, R> {
  rewards: Readonly<Record<N, number>>;
  reward?: never;
  rewardGroup(group: FinishedGroup<S>): readonly PartialRewards<N>[] | Promise<readonly PartialRewards<N>[]>;
  rollout(context: RolloutContext<S, R>): PartialResult<N> | Promise<PartialResult<N>>;
}

/** Names of the roles that a rollout rewards: trained ones, and those of a league. */
export type RewardedRoles<P extends RoleDefinitions> = {
  [Name in keyof P & string]: P[Name]['kind'] extends 'frozen' ? never : Name;
}[keyof P & string];

/** Several players, each with a client and a reward of its own. */
export interface RolesAgentDefinition<S extends Scenario, P extends RoleDefinitions, R extends Resources = NoResources>
  extends Parts<S, R>, OwnRewards {
  captureModel?: never;
  roles: P;
  /** One role wins what another loses: rewards are then compared with the running mean of their role. */
  competing?: boolean;
  rollout(
    context: RolloutContext<S, R> & { roles: Readonly<Record<keyof P & string, ModelClient>> },
  ): RoleResult<RewardedRoles<P>> | Promise<RoleResult<RewardedRoles<P>>>;
}

type OnePolicyDefinition<S extends Scenario, R extends Resources, N extends string> =
  | AgentDefinition<S, R>
  | JudgedAgentDefinition<S, R>
  | ExternalAgentDefinition<S, R>
  | NamedRewardsDefinition<S, N, R>
  | GroupRewardDefinition<S, R>
  | NamedGroupRewardDefinition<S, N, R>;

export function defineAgent<S extends Scenario, const P extends RoleDefinitions, R extends Resources = NoResources>(
  definition: RolesAgentDefinition<S, P, R>,
): Agent<S>;
export function defineAgent<S extends Scenario, N extends string, const E extends N, R extends Resources = NoResources>(
  definition: NamedExternalDefinition<S, N, E, R>,
): Agent<S>;
export function defineAgent<S extends Scenario, R extends Resources = NoResources, N extends string = string>(
  definition: OnePolicyDefinition<S, R, N>,
): Agent<S>;
export function defineAgent<S extends Scenario>(definition: AgentParts<S>): Agent<S> {
  return Object.freeze({ ...(checkAgent(definition) as Agent<S>), [AGENT]: true as const });
}
