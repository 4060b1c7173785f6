/** Defines an agent: `export default defineAgent({ name, scenarios, rollout })`. */
import { NAME_PATTERN } from '../../core/wire-constants.ts';
import { TemperError } from '../../core/failures.ts';
import {
  AGENT,
  type Agent,
  type AgentParts,
  type JudgedResult,
  type RolloutContext,
  type RolloutResult,
  type Scenario,
} from '../../play/agent.ts';
import { checkOptions } from '../options/check-options.ts';
import { findRolesProblem } from '../roles/check-roles.ts';
import type { RoleContext, RoleResult } from '../../play/roles/role-context.ts';
import type { RoleDefinitions } from '../../play/roles/role-definition.ts';
import { isRuler, type Ruler } from '../../play/judge/ruler.ts';

interface NoRoles {
  roles?: never;
  competing?: never;
}

export interface AgentDefinition<S extends Scenario> extends AgentParts<S>, NoRoles {
  reward?: never;
  rollout(context: RolloutContext<S>): RolloutResult | Promise<RolloutResult>;
}

/** Its attempts are judged against each other, and trained with what the judge says. */
export interface JudgedAgentDefinition<S extends Scenario> extends AgentParts<S>, NoRoles {
  reward: Ruler;
  rollout(context: RolloutContext<S>): JudgedResult | Promise<JudgedResult>;
}

/** Names of the roles that a rollout rewards: trained ones, and those of a league. */
export type RewardedRoles<R extends RoleDefinitions> = {
  [Name in keyof R & string]: R[Name]['kind'] extends 'frozen' ? never : Name;
}[keyof R & string];

/** Several players, each with a client and a reward of its own. */
export interface RolesAgentDefinition<S extends Scenario, R extends RoleDefinitions> extends AgentParts<S> {
  reward?: never;
  captureModel?: never;
  roles: R;
  /** One role wins what another loses: rewards are then compared with the running mean of their role. */
  competing?: boolean;
  rollout(
    context: RolloutContext<S> & { roles: Readonly<Record<keyof R & string, RoleContext>> },
  ): RoleResult<RewardedRoles<R>> | Promise<RoleResult<RewardedRoles<R>>>;
}

export function defineAgent<S extends Scenario, const R extends RoleDefinitions>(
  definition: RolesAgentDefinition<S, R>,
): Agent<S>;
export function defineAgent<S extends Scenario>(definition: AgentDefinition<S> | JudgedAgentDefinition<S>): Agent<S>;
export function defineAgent<S extends Scenario>(
  definition: AgentDefinition<S> | JudgedAgentDefinition<S> | RolesAgentDefinition<S, RoleDefinitions>,
): Agent<S> {
  const complaint = findProblem(checkOptions('defineAgent', definition));
  if (complaint !== null) throw new TemperError('BadConfig', complaint);
  return Object.freeze({ ...definition, [AGENT]: true as const });
}

/** A JavaScript caller may pass values of any type. */
function findProblem(definition: object): string | null {
  const { name, scenarios, evalScenarios, captureModel, reward, rollout } = definition as Record<string, unknown>;
  if (typeof name !== 'string' || !NAME_PATTERN.test(name)) {
    return `the agent's name must be lower case letters, digits and ._- (${NAME_PATTERN.source}), got ${shown(name)}; rename it`;
  }
  if (typeof rollout !== 'function')
    return `the agent ${name} must have a function rollout, got ${shown(rollout)}; add one`;
  if (reward !== undefined && !isRuler(reward))
    return `the reward of the agent ${name} must be ruler({ … }), got ${shown(reward)}; return a reward of its own from rollout`;
  if (captureModel !== undefined && (typeof captureModel !== 'string' || captureModel === ''))
    return `captureModel of the agent ${name} must be the name of a model, got ${shown(captureModel)}; pass the one that your code asks for`;
  const ofRoles = findRolesProblem(name, definition);
  if (ofRoles !== null) return ofRoles;
  const sources = { scenarios, ...(evalScenarios === undefined ? {} : { evalScenarios }) };
  const wrong = Object.entries(sources).find(([, source]) => !isSource(source));
  if (wrong === undefined) return null;
  const kinds = 'a list, a generator, a function that returns one, a file URL or a path';
  return `${wrong[0]} of the agent ${name} must be ${kinds}, got ${shown(wrong[1])}; pass one of these`;
}

function isSource(source: unknown): boolean {
  if (typeof source === 'string') return source !== '';
  if (typeof source === 'function') return true;
  if (typeof source !== 'object' || source === null) return false;
  return source instanceof URL || Symbol.iterator in source || Symbol.asyncIterator in source;
}

function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  return (JSON.stringify(value) ?? String(value)).slice(0, 80);
}
