/** What the definition of an agent may be. */
import { isReward, REWARD_RULE } from '../../core/rules/given-values.ts';
import { showValue } from '../../core/contract/failures.ts';
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import type { Agent, AGENT } from '../../play/agent.ts';
import { isExternal, type External } from '../../play/external.ts';
import { isRuler } from '../../play/judge/ruler.ts';
import { isToolServer } from '../../play/mcp/tool-server.ts';
import { isResource } from '../../play/resources/resource.ts';
import { anything, callable, isText, must, optional, takes, text } from '../options/options.ts';
import { findAgentRolesProblem } from '../roles/check-roles.ts';

/** Every part of an agent of any kind. */
type Definition = Omit<Agent, 'folder' | typeof AGENT>;

const isName = (value: unknown): boolean => typeof value === 'string' && NAME_PATTERN.test(value);
const aSource = must(
  'a list, a generator, a function that returns one, a file URL or a path',
  isSource,
  'pass one of these',
);

export const checkAgent = takes<Definition>(
  'defineAgent',
  {
    name: must(`lower case letters, digits and ._- (${NAME_PATTERN.source})`, isName, 'rename it'),
    scenarios: aSource,
    rollout: callable('add one'),
    evalScenarios: aSource.optional(),
    spreadBy: text("pass for example 'label'", 'the name of a field of its scenarios').optional(),
    captureModel: text('pass the one that your code asks for', 'the name of a model').optional(),
    reward: must(
      'ruler({ … }), external({ … }) or review({ … })',
      (value) => isRuler(value) || isExternal(value),
      'return a reward of its own from rollout',
    ).optional(),
    rewards: anything.optional(),
    rewardGroup: callable('pass one that returns a reward for each attempt').optional(),
    resources: anything.optional(),
    mcp: must(
      'a list of servers',
      (value) => Array.isArray(value) && value.every(isToolServer),
      'pass [mcp({ … })]',
    ).optional(),
    ...optional('roles', 'competing'),
  },
  {
    owner: ({ name }) => (isName(name) ? `the agent ${name}` : 'defineAgent'),
    rules: [
      (definition) => findAgentRolesProblem(definition.name, definition),
      findRewardProblem,
      ({ name, resources }) => findResourceProblem(name, resources),
    ],
  },
);

function findRewardProblem({ name: agent, reward, rewards, rewardGroup }: Definition): string | null {
  if (rewardGroup !== undefined && reward !== undefined) {
    const remedy = isRuler(reward) ? 'call ruler(attempts, { … }) in rewardGroup' : 'remove one of them';
    return `the agent ${agent} must have one judge, got reward and rewardGroup; ${remedy}`;
  }
  if (isExternal(reward)) return findExternalProblem(agent, reward, rewards);
  if (rewards === undefined) return null;
  if (isRuler(reward) && reward.weights.agent === 0)
    return `rewards of the agent ${agent} have no effect when only the judge gives rewards; give the agent a weight in ruler({ weights })`;
  return findWeightsProblem(agent, rewards);
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
  if (isText(source) || typeof source === 'function') return true;
  if (typeof source !== 'object' || source === null) return false;
  return source instanceof URL || Symbol.iterator in source || Symbol.asyncIterator in source;
}
