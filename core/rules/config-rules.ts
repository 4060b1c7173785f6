/** The rules between a run's options, as data. Workflows hold changed settings to them: no zod here. Losses: `loss-options.ts`. */
import type { RunConfig, SupervisedConfig, TrainConfig } from '../contract/contract.ts';
import { isAwaited, REVIEW } from './external-rewards.ts';
import { REWARD_GROUP } from './named-rewards.ts';
import { leagueRoles, otherPolicies, trainedRoles } from './roles.ts';
import { SCHEMA_DEFAULTS } from '../contract/schema-defaults.ts';

type Option =
  | keyof RunConfig
  | `train.${keyof TrainConfig}`
  | `supervised.${keyof SupervisedConfig}`
  | 'external.minimum';

/** An option that acts only if another one has one of these values; by default any but its neutral one, null: that alone. */
interface Dependent {
  readonly option: Option;
  readonly on: Option;
  readonly is?: readonly string[] | null;
  /** Value that asks for nothing; by default that of `SCHEMA_DEFAULTS`, or none. */
  readonly neutral?: unknown;
}

const DEPENDENTS: readonly Dependent[] = [
  { option: 'finalLearningRateShare', on: 'learningRateSchedule', is: ['linear', 'cosine'], neutral: 1 },
  { option: 'learningRateRestarts', on: 'learningRateSchedule', is: ['cosine'] },
  { option: 'maxRewardStaleness', on: 'groupsAhead' },
  { option: 'train.reductionTokens', on: 'train.reduction', is: ['constant'] },
  { option: 'train.correctionCap', on: 'train.correction' },
  { option: 'train.klEstimator', on: 'train.klAs', is: ['loss'] },
  { option: 'train.klEstimator', on: 'train.klCoefficient' },
  { option: 'train.klReference', on: 'train.klCoefficient' },
  { option: 'train.klAs', on: 'train.klCoefficient' },
  { option: 'train.advantageScale', on: 'train.baseline', is: ['group'], neutral: 'none' },
  { option: 'train.leaveOneOut', on: 'train.baseline', is: ['group'], neutral: false },
  { option: 'train.overlongPenalty', on: 'train.overlongBuffer' },
  { option: 'supervised.learningRate', on: 'supervised.steps' },
  { option: 'supervised.learningRateSchedule', on: 'supervised.steps' },
  // A run begins with the one or the other.
  { option: 'startAdapter', on: 'parent', is: null },
  { option: 'startAdapter', on: 'train.lora' },
  // Their reward is their feedback, and no attempt is played.
  { option: 'maxStaleness', on: 'production', is: null },
  { option: 'judge', on: 'production', is: null },
];

type Given = Pick<Dependent, 'option' | 'neutral'>;

/** An option that does nothing in some runs. */
interface Idle extends Given {
  readonly acts: (config: RunConfig) => boolean;
  /** Completes "has no effect". */
  readonly unless: string;
  readonly remedy: string;
}

const IDLE: readonly Idle[] = [
  {
    option: 'maxCostUsd',
    acts: (config) => config.gpuUsdPerHour !== null || hasPaidJudge(config) || hasHosted(config),
    unless: 'while nothing of the run has a price',
    remedy: 'set gpuUsdPerHour, to 0 if only hosted models cost money',
  },
  {
    option: 'groupsAhead',
    acts: ({ judge }) => isAwaited(judge),
    unless: 'with an agent whose groups wait for no reward',
    remedy: 'set maxStaleness to play ahead of training, give the agent reward: external({ … })',
  },
];

function hasPaidJudge({ judge }: RunConfig): boolean {
  return judge !== null && judge !== REWARD_GROUP && !isAwaited(judge);
}

function hasHosted({ roles = {} }: RunConfig): boolean {
  return Object.values(roles).some(({ kind }) => kind === 'hosted');
}

/** With a judge and one round of replacements, a group takes up to 24 events of the history, of which Temporal takes 51,200. */
const MOST_GROUPS = 2000;
/** Each group wakes the run once it is complete. Open ones ride in its state. */
const MOST_AWAITED_GROUPS = 500;

/** An option that has an upper bound, where the function gives one. */
interface Limit {
  readonly option: Option;
  readonly most: (config: RunConfig) => number | false;
  /** Completes "must be". */
  readonly rule: string;
  readonly remedy?: string;
}

const hasLeague = (config: RunConfig) => leagueRoles(config).length > 0;

const LIMITS: readonly Limit[] = [
  {
    option: 'minimumGroupSize',
    most: ({ groupSize }) => groupSize,
    rule: 'at most groupSize',
    remedy: 'raise groupSize',
  },
  {
    option: 'external.minimum',
    most: ({ groupSize }) => groupSize,
    rule: 'at most groupSize',
    remedy: 'raise groupSize',
  },
  { option: 'warmupSteps', most: ({ steps }) => steps - 1, rule: 'fewer than steps', remedy: 'raise steps' },
  {
    option: 'maxStaleness',
    most: ({ steps }) => steps - 1,
    rule: 'fewer than steps (a step is played at most so many steps ahead)',
  },
  {
    option: 'learningRateRestarts',
    most: ({ steps, warmupSteps }) => Math.max(0, steps - warmupSteps - 2),
    rule: 'fewer than the steps after the first one at the full rate',
  },
  { option: 'groupsPerStep', most: () => MOST_GROUPS, rule: `at most ${MOST_GROUPS}`, remedy: 'raise steps' },
  {
    option: 'train.miniBatches',
    most: ({ groupsPerStep }) => groupsPerStep,
    rule: 'at most groupsPerStep (a mini-batch is made of whole groups)',
  },
  {
    option: 'maxStaleness',
    most: ({ external }) => external !== undefined && 0,
    rule: '0 with rewards from outside (a step waits for its rewards before the next one is played)',
    remedy: 'set groupsAhead instead',
  },
  {
    option: 'replacementRounds',
    most: ({ external }) => external !== undefined && 0,
    rule: '0 with rewards from outside (a step would wait for them again)',
    remedy: 'set groupsAhead to play further groups',
  },
  {
    option: 'groupsPerStep',
    most: ({ external, groupsAhead }) => external !== undefined && MOST_AWAITED_GROUPS - groupsAhead,
    rule: `with groupsAhead at most ${MOST_AWAITED_GROUPS}, where rewards come from outside`,
    remedy: 'lower groupsAhead',
  },
  {
    option: 'groupsAhead',
    most: ({ groupsPerStep, maxRewardStaleness }) => groupsPerStep * maxRewardStaleness,
    rule: 'at most groupsPerStep × maxRewardStaleness (later groups would be left out as too old)',
    remedy: 'raise maxRewardStaleness',
  },
  {
    option: 'supervised.heldOut',
    most: ({ supervised }) => supervised !== undefined && supervised.examples - 1,
    rule: 'fewer than the examples',
  },
  {
    option: 'supervised.steps',
    most: ({ steps }) => steps - 1,
    rule: 'fewer than steps (the run plays its agent after them)',
    remedy: 'raise steps, or train on the examples alone (temper train FILE)',
  },
  {
    option: 'warmupSteps',
    most: ({ supervised: { steps: first } = {}, steps }) => first !== undefined && Math.max(0, steps - first - 1),
    rule: 'fewer than the steps after the supervised ones',
  },
  {
    option: 'maxStaleness',
    most: ({ supervised }) => supervised !== undefined && 0,
    rule: '0 in a run with supervised steps (the first attempts would be sampled before they are trained)',
  },
  {
    option: 'groupsAhead',
    most: (config) => hasLeague(config) && 0,
    rule: '0 with a league (its opponents are drawn by the newest scores)',
  },
  {
    option: 'maxStaleness',
    most: (config) => hasLeague(config) && 0,
    rule: '0 with a league (its opponents are drawn by the newest scores)',
  },
];

/** Describes a contradiction; null if there is none. */
export function findConfigProblem(config: RunConfig): string | null {
  return findIdleOption(config) ?? findLimitProblem(config) ?? findSourceProblem(config) ?? findRolesProblem(config);
}

/** `klAs reward has no effect with klCoefficient 0; set klCoefficient, or leave klAs out` */
function findIdleOption(config: RunConfig): string | null {
  const dependent = DEPENDENTS.find((row) => isGiven(row, config) && !isActive(row, config));
  if (dependent !== undefined) {
    const { option, on, is } = dependent;
    const remedy = is === null ? '' : `set ${nameOf(on)}${is === undefined ? '' : ` to ${is.join(' or ')}`}, or `;
    return `${show(option, config)} has no effect with ${show(on, config)}; ${remedy}leave ${nameOf(option)} out`;
  }
  const idle = IDLE.find((row) => isGiven(row, config) && !row.acts(config));
  if (idle === undefined) return null;
  const { option, unless, remedy } = idle;
  return `${show(option, config)} has no effect ${unless}; ${remedy}, or leave ${nameOf(option)} out`;
}

function isGiven({ option, neutral = valueAt(SCHEMA_DEFAULTS, option) }: Given, config: RunConfig): boolean {
  return (valueAt(config, option) ?? null) !== (typeof neutral === 'object' ? null : (neutral ?? null));
}

function isActive({ on, is }: Dependent, config: RunConfig): boolean {
  if (Array.isArray(is)) return is.includes(valueAt(config, on));
  return isGiven({ option: on }, config) === (is === undefined);
}

/** `warmupSteps must be fewer than steps, got 9; lower warmupSteps to 5, or raise steps` */
function findLimitProblem(config: RunConfig): string | null {
  for (const { option, most, rule, remedy } of LIMITS) {
    const [value = 0, limit] = [valueAt(config, option) as number | undefined, most(config)];
    if (limit === false || value <= limit) continue;
    return `${nameOf(option)} must be ${rule}, got ${value}; lower ${nameOf(option)} to ${limit}${remedy === undefined ? '' : `, or ${remedy}`}`;
  }
  if (config.train.reduction !== 'constant' || config.train.reductionTokens !== undefined) return null;
  return 'reduction constant must be given reductionTokens (how many tokens an attempt counts as), got none; set reductionTokens to what an attempt samples at most';
}

function show(option: Option, config: RunConfig): string {
  const value = valueAt(config, option) ?? 'none';
  return typeof value === 'object' ? nameOf(option) : `${nameOf(option)} ${value as string | number}`;
}

function nameOf(option: Option): string {
  return option.replace('train.', '');
}

function valueAt(value: unknown, path: string): unknown {
  return path.split('.').reduce((at, key) => (at as Record<string, unknown> | null | undefined)?.[key], value);
}

/** Where a run's rewards and attempts come from. */
function findSourceProblem(config: RunConfig): string | null {
  const { judge, external, production, supervised, roles, parent, train } = config;
  if (isAwaited(judge) !== (external !== undefined))
    return `the judge ${judge} and the rewards from outside contradict each other; give the agent reward: external({ … }), and leave judge out`;
  if (external !== undefined && (judge === REVIEW) !== (external.review !== undefined))
    return `the judge ${judge} and the review contradict each other; give the agent reward: review({ … }), and leave judge out`;
  if (production === undefined) return null;
  if (train.baseline !== 'rae')
    return `baseline must be rae with recorded conversations (each is a single attempt, so no group has a mean), got ${train.baseline}; leave baseline out`;
  if (supervised !== undefined)
    return 'a run must train examples or recorded conversations, got both; leave the warm start out, or train it first (temper train FILE)';
  if (roles !== undefined)
    return 'recorded conversations must train an agent without roles (no role is recorded with them); leave roles out';
  if (parent !== null) return null;
  return 'a run must start from a checkpoint if it trains recorded conversations, got none; pass the checkpoint that served';
}

function findRolesProblem(config: RunConfig): string | null {
  const [other] = otherPolicies(config);
  if (other !== undefined && config.train.lora === null)
    return `roles must share the policy main if all weights are trained (each other policy is an adapter), got ${other}; train with LoRA, or use policy() for every role`;
  if (other !== undefined && config.supervised !== undefined)
    return `supervised steps train the policy main alone, and the roles train ${other} too; leave the warm start out, or use policy() for every role`;
  if (config.competing !== true || config.train.baseline === 'rae') return null;
  // The rewards of competing roles sum to nothing: their mean says nothing of any of them.
  const policies = Object.values(trainedRoles(config) ?? {});
  const shared = policies.find((policy, index) => policies.indexOf(policy) !== index);
  if (shared === undefined) return null;
  return `baseline must be rae where competing roles share a policy (one wins what the other loses, so a group's mean over both carries no information), got group for the policy ${shared}; leave baseline out, or give each role a policy of its own`;
}

/** A fork's parent without the options that depend on one to which `values` gives another value: these take their defaults. */
export function withoutDependents(parent: RunConfig, values: ReadonlyMap<string, unknown>): RunConfig {
  const isChanged = (option: Option) => values.has(option) && values.get(option) !== valueAt(parent, option);
  const gone = new Set<string>(DEPENDENTS.filter(({ on }) => isChanged(on)).map(({ option }) => option));
  const keep = (path: string, options: object) =>
    Object.fromEntries(Object.entries(options).filter(([name]) => !gone.has(`${path}${name}`)));
  return { ...keep('', parent), train: keep('train.', parent.train) } as RunConfig;
}
