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
import { isRuler, type Ruler } from '../../play/judge/ruler.ts';
import { isResource, type NoResources, type Resources } from '../../play/resources/resource.ts';

export interface AgentDefinition<S extends Scenario, R extends Resources = NoResources> extends AgentParts<S> {
  reward?: never;
  /** `resource({ … })` by name: set up before the attempts, and ended after them. */
  resources?: R;
  rollout(context: RolloutContext<S, R>): RolloutResult | Promise<RolloutResult>;
}

/** Its attempts are judged against each other, and trained with what the judge says. */
export interface JudgedAgentDefinition<S extends Scenario, R extends Resources = NoResources> extends AgentParts<S> {
  reward: Ruler;
  resources?: R;
  rollout(context: RolloutContext<S, R>): JudgedResult | Promise<JudgedResult>;
}

export function defineAgent<S extends Scenario, R extends Resources = NoResources>(
  definition: AgentDefinition<S, R> | JudgedAgentDefinition<S, R>,
): Agent<S> {
  const complaint = findProblem(checkOptions('defineAgent', definition));
  if (complaint !== null) throw new TemperError('BadConfig', complaint);
  return Object.freeze({ ...definition, [AGENT]: true as const });
}

/** A JavaScript caller may pass values of any type. */
function findProblem(definition: object): string | null {
  const { name, scenarios, evalScenarios, captureModel, reward, resources, rollout } = definition as Record<
    string,
    unknown
  >;
  if (typeof name !== 'string' || !NAME_PATTERN.test(name)) {
    return `the agent's name must be lower case letters, digits and ._- (${NAME_PATTERN.source}), got ${shown(name)}; rename it`;
  }
  if (typeof rollout !== 'function')
    return `the agent ${name} must have a function rollout, got ${shown(rollout)}; add one`;
  if (reward !== undefined && !isRuler(reward))
    return `the reward of the agent ${name} must be ruler({ … }), got ${shown(reward)}; return a reward of its own from rollout`;
  if (captureModel !== undefined && (typeof captureModel !== 'string' || captureModel === ''))
    return `captureModel of the agent ${name} must be the name of a model, got ${shown(captureModel)}; pass the one that your code asks for`;
  const sources = { scenarios, ...(evalScenarios === undefined ? {} : { evalScenarios }) };
  const wrong = Object.entries(sources).find(([, source]) => !isSource(source));
  if (wrong === undefined) return findResourceProblem(name, resources);
  const kinds = 'a list, a generator, a function that returns one, a file URL or a path';
  return `${wrong[0]} of the agent ${name} must be ${kinds}, got ${shown(wrong[1])}; pass one of these`;
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
  if (typeof value === 'function') return 'a function';
  return (JSON.stringify(value) ?? String(value)).slice(0, 80);
}
