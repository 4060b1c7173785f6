/** Checks the definition of an agent: a JavaScript caller may pass values of any type. */
import { isReward, REWARD_RULE } from '../../core/rules/given-values.ts';
import { showValue } from '../../core/contract/failures.ts';
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import { isExternal, type External } from '../../play/external.ts';
import { isRuler } from '../../play/judge/ruler.ts';
import { isToolServer } from '../../play/mcp/tool-server.ts';
import { isResource } from '../../play/resources/resource.ts';
import { findAgentRolesProblem } from '../roles/check-roles.ts';

type Definition = Readonly<Record<string, unknown>>;

/** Null if nothing is wrong. */
export function findProblem(definition: object): string | null {
  const members = definition as Definition;
  const { name } = members;
  if (typeof name !== 'string' || !NAME_PATTERN.test(name)) {
    return `the agent's name must be lower case letters, digits and ._- (${NAME_PATTERN.source}), got ${showValue(name)}; rename it`;
  }
  return (
    findWrongOption(name, members) ??
    findAgentRolesProblem(name, members) ??
    findRewardProblem(name, members) ??
    findSourceProblem(name, members) ??
    findResourceProblem(name, members['resources'])
  );
}

function findWrongOption(agent: string, { rollout, captureModel, spreadBy, mcp = [] }: Definition): string | null {
  if (typeof rollout !== 'function')
    return `the agent ${agent} must have a function rollout, got ${showValue(rollout)}; add one`;
  if (captureModel !== undefined && (typeof captureModel !== 'string' || captureModel === ''))
    return `captureModel of the agent ${agent} must be the name of a model, got ${showValue(captureModel)}; pass the one that your code asks for`;
  if (spreadBy !== undefined && typeof spreadBy !== 'string')
    return `spreadBy of the agent ${agent} must be the name of a field of its scenarios, got ${showValue(spreadBy)}; pass for example 'label'`;
  if (!Array.isArray(mcp) || !mcp.every(isToolServer))
    return `mcp of the agent ${agent} must be a list of servers, got ${showValue(mcp)}; pass [mcp({ … })]`;
  return null;
}

function findSourceProblem(agent: string, { scenarios, evalScenarios }: Definition): string | null {
  const sources = { scenarios, ...(evalScenarios === undefined ? {} : { evalScenarios }) };
  const wrong = Object.entries(sources).find(([, source]) => !isSource(source));
  const kinds = 'a list, a generator, a function that returns one, a file URL or a path';
  return wrong === undefined
    ? null
    : `${wrong[0]} of the agent ${agent} must be ${kinds}, got ${showValue(wrong[1])}; pass one of these`;
}

function findRewardProblem(agent: string, { reward, rewards, rewardGroup }: Definition): string | null {
  if (reward !== undefined && !isRuler(reward) && !isExternal(reward))
    return `the reward of the agent ${agent} must be ruler({ … }), external({ … }) or review({ … }), got ${showValue(reward)}; return a reward of its own from rollout`;
  const ofGroup = rewardGroup === undefined ? null : findRewardGroupProblem(agent, reward, rewardGroup);
  if (ofGroup !== null) return ofGroup;
  if (isExternal(reward)) return findExternalProblem(agent, reward, rewards);
  if (rewards === undefined) return null;
  if (isRuler(reward) && reward.weights.agent === 0)
    return `rewards of the agent ${agent} have no effect when only the judge gives rewards; give the agent a weight in ruler({ weights })`;
  return findWeightsProblem(agent, rewards);
}

function findRewardGroupProblem(agent: string, reward: unknown, rewardGroup: unknown): string | null {
  if (typeof rewardGroup !== 'function')
    return `rewardGroup of the agent ${agent} must be a function, got ${showValue(rewardGroup)}; pass one that returns a reward for each attempt`;
  if (reward === undefined) return null;
  const remedy = isRuler(reward) ? 'call ruler(attempts, { … }) in rewardGroup' : 'remove one of them';
  return `the agent ${agent} must have one judge, got reward and rewardGroup; ${remedy}`;
}

/** Named, it is one of the weights; without a name, it is the whole reward. */
function findExternalProblem(agent: string, { name, review }: External, rewards: unknown): string | null {
  const problem = rewards === undefined ? null : findWeightsProblem(agent, rewards);
  if (problem !== null) return problem;
  if (review !== undefined && rewards !== undefined)
    return `rewards of the agent ${agent} cannot be combined with review({ … }); return one reward, and weigh it with review({ weights })`;
  const names = Object.keys(rewards ?? {});
  if (name === null && names.length > 0)
    return `external({ … }) of the agent ${agent} must be named where there are rewards by name, got no name; pass external({ name: '${names[0]}' })`;
  if (name === null) return null;
  if (!names.includes(name))
    return `external({ name: '${name}' }) of the agent ${agent} must name one of its rewards, got ${names.join(', ') || 'none'}; add rewards: { ${name}: 1 }`;
  return (rewards as Record<string, number>)[name] === 0
    ? `the reward ${name} of the agent ${agent} must have another weight than 0 (the run waits for it); raise it, or remove external({ … })`
    : null;
}

const REWARD_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
const MAX_REWARDS = 32;

function findWeightsProblem(agent: string, rewards: unknown): string | null {
  const remedy = 'pass for example { correct: 1, short: 0.1 }';
  const entries = typeof rewards === 'object' && rewards !== null ? Object.entries(rewards) : [];
  if (entries.length === 0 || entries.length > MAX_REWARDS || Array.isArray(rewards))
    return `rewards of the agent ${agent} must be 1 to ${MAX_REWARDS} weights by name, got ${showValue(rewards)}; ${remedy}`;
  const misnamed = entries.find(([name]) => !REWARD_NAME.test(name));
  if (misnamed !== undefined)
    return `the name of a reward of the agent ${agent} must be letters, digits, _ and -, got ${showValue(misnamed[0])}; rename it`;
  const wrong = entries.find(([, weight]) => !isReward(weight));
  if (wrong !== undefined)
    return `the weight of the reward ${wrong[0]} of the agent ${agent} must be ${REWARD_RULE}, got ${showValue(wrong[1])}; ${remedy}`;
  return entries.every(([, weight]) => weight === 0)
    ? `one of the rewards of the agent ${agent} must have another weight than 0, or nothing is learned; ${remedy}`
    : null;
}

/** Names that a property access may have. */
const RESOURCE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

function findResourceProblem(agent: string, resources: unknown = {}): string | null {
  if (typeof resources !== 'object' || resources === null || Array.isArray(resources))
    return `resources of the agent ${agent} must be resource({ … }) by name, got ${showValue(resources)}; pass { database: resource({ … }) }`;
  for (const [name, value] of Object.entries(resources)) {
    if (!RESOURCE_NAME.test(name))
      return `a resource of the agent ${agent} must be named like a variable (${RESOURCE_NAME.source}), got ${showValue(name)}; rename it`;
    if (!isResource(value))
      return `the resource ${name} of the agent ${agent} must be resource({ … }), got ${showValue(value)}; pass resource({ scope, setup, teardown })`;
  }
  return null;
}

function isSource(source: unknown): boolean {
  if (typeof source === 'string') return source !== '';
  if (typeof source === 'function') return true;
  if (typeof source !== 'object' || source === null) return false;
  return source instanceof URL || Symbol.iterator in source || Symbol.asyncIterator in source;
}
