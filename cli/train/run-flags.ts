/** The flags that make up a run's configuration: one row each, from the flag's name to the field it sets. */
import type { z } from 'zod';
import { RunConfig } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { defaultRunConfig } from '../../core/run-defaults.ts';
import type { RunOptions } from '../../core/run-defaults.ts';
import type { CommandOptions, Flags } from '../command.ts';
import { UsageError } from '../errors.ts';

type Kind = 'integer' | 'number' | 'boolean' | 'text' | 'list';

interface RunFlag {
  readonly flag: string;
  /** Where the value stands in RunConfig, e.g. `train.lora.rank`. */
  readonly path: string;
  readonly kind: Kind;
  readonly description: string;
  /** Said in parentheses when the rule is broken. */
  readonly because?: string;
}

export const RUN_FLAGS: readonly RunFlag[] = [
  {
    flag: 'base-model',
    path: 'baseModel',
    kind: 'text',
    description: 'pocket, a folder, or a name of the Hugging Face hub',
  },
  { flag: 'seed', path: 'seed', kind: 'integer', description: 'seed of everything that is drawn' },
  {
    flag: 'steps',
    path: 'steps',
    kind: 'integer',
    description: 'optimizer steps',
    because: 'a run of no steps trains nothing',
  },
  { flag: 'groups-per-step', path: 'groupsPerStep', kind: 'integer', description: 'scenarios played in one step' },
  {
    flag: 'group-size',
    path: 'groupSize',
    kind: 'integer',
    description: 'attempts at each scenario',
    because: 'an advantage is relative to its group',
  },
  {
    flag: 'minimum-group-size',
    path: 'minimumGroupSize',
    kind: 'integer',
    description: 'attempts a group must have left to be trained',
  },
  {
    flag: 'replacement-rounds',
    path: 'replacementRounds',
    kind: 'integer',
    description: 'how often a step deals fresh scenarios for groups whose rewards are all equal',
  },
  {
    flag: 'max-scenarios',
    path: 'maxScenarios',
    kind: 'integer',
    description: 'at most so many training scenarios are read',
  },
  {
    flag: 'eval-scenarios',
    path: 'evalScenarios',
    kind: 'integer',
    description: 'at most so many held-out scenarios are played',
  },
  {
    flag: 'eval-every',
    path: 'evalEvery',
    kind: 'integer',
    description: 'evaluate every n steps besides before and after; 0: only those two',
  },
  { flag: 'learning-rate', path: 'learningRate', kind: 'number', description: 'learning rate of AdamW' },
  {
    flag: 'learning-rate-schedule',
    path: 'learningRateSchedule',
    kind: 'text',
    description: 'constant, linear or cosine',
  },
  {
    flag: 'final-learning-rate-share',
    path: 'finalLearningRateShare',
    kind: 'number',
    description: 'share of the learning rate left at the last step',
  },
  {
    flag: 'warmup-steps',
    path: 'warmupSteps',
    kind: 'integer',
    description: 'steps over which the learning rate rises',
  },
  { flag: 'weight-decay', path: 'train.optimizer.weightDecay', kind: 'number', description: 'weight decay of AdamW' },
  {
    flag: 'max-grad-norm',
    path: 'train.optimizer.maxGradNorm',
    kind: 'number',
    description: 'the gradient is clipped to this norm',
  },
  { flag: 'beta1', path: 'train.optimizer.beta1', kind: 'number', description: 'first moment of AdamW' },
  { flag: 'beta2', path: 'train.optimizer.beta2', kind: 'number', description: 'second moment of AdamW' },
  { flag: 'adam-epsilon', path: 'train.optimizer.epsilon', kind: 'number', description: 'epsilon of AdamW' },
  { flag: 'lora-rank', path: 'train.lora.rank', kind: 'integer', description: 'rank of the adapter' },
  { flag: 'lora-alpha', path: 'train.lora.alpha', kind: 'number', description: 'scale of the adapter: alpha / rank' },
  {
    flag: 'lora-target-modules',
    path: 'train.lora.targetModules',
    kind: 'list',
    description: 'names, comma-separated; absent: every linear layer but the head',
  },
  {
    flag: 'temperature',
    path: 'rollout.temperature',
    kind: 'number',
    description: 'of every call while training and evaluating',
  },
  {
    flag: 'max-tokens',
    path: 'rollout.maxTokens',
    kind: 'integer',
    description: 'sampled by a call that names no limit of its own',
  },
  {
    flag: 'max-calls-per-attempt',
    path: 'rollout.maxCallsPerAttempt',
    kind: 'integer',
    description: 'an attempt that makes more calls fails',
  },
  {
    flag: 'attempt-timeout-ms',
    path: 'rollout.attemptTimeoutMs',
    kind: 'integer',
    description: 'an attempt that takes longer fails',
  },
  { flag: 'call-timeout-ms', path: 'rollout.callTimeoutMs', kind: 'integer', description: 'deadline of one call' },
  {
    flag: 'call-retry-budget-ms',
    path: 'rollout.callRetryBudgetMs',
    kind: 'integer',
    description: 'how long a call is retried while the engine is away',
  },
  { flag: 'loss', path: 'train.loss.name', kind: 'text', description: 'cispo, ppo or importance_sampling' },
  {
    flag: 'epsilon-low',
    path: 'train.loss.epsilonLow',
    kind: 'number',
    description: 'the ratio is clipped at 1 - epsilon-low',
  },
  {
    flag: 'epsilon-high',
    path: 'train.loss.epsilonHigh',
    kind: 'number',
    description: 'the ratio is clipped at 1 + epsilon-high',
  },
  {
    flag: 'dual-clip',
    path: 'train.loss.dualClip',
    kind: 'number',
    description: "ppo's bound for negative advantages",
  },
  { flag: 'advantage-scale', path: 'train.advantageScale', kind: 'text', description: 'none, group-std or batch-std' },
  {
    flag: 'leave-one-out',
    path: 'train.leaveOneOut',
    kind: 'boolean',
    description: 'compare an attempt with the mean of the others',
  },
  {
    flag: 'truncated',
    path: 'train.truncated',
    kind: 'text',
    description: 'attempts cut off at their token limit: mask, penalise or keep',
  },
  {
    flag: 'max-logprob-mismatch',
    path: 'train.maxLogprobMismatch',
    kind: 'number',
    description: 'sampler and trainer may differ by so much (k3) before a step is refused',
  },
  {
    flag: 'micro-batch-tokens',
    path: 'train.microBatchTokens',
    kind: 'integer',
    description: 'tokens in one micro-batch: memory against speed',
  },
  {
    flag: 'continue-as-new-every',
    path: 'continueAsNewEvery',
    kind: 'integer',
    description: 'steps after which the workflow starts a fresh history',
  },
];

const PLACEHOLDERS: Readonly<Record<Kind, string>> = {
  integer: 'N',
  number: 'X',
  boolean: '',
  text: 'NAME',
  list: 'A,B',
};

const DEFAULTS = defaultRunConfig({ run: 'run', agent: 'agent', baseModel: 'model' });
/** Its default depends on another flag, or is none. */
const NO_DEFAULT = new Set(['baseModel', 'finalLearningRateShare', 'train.loss.epsilonLow', 'train.loss.epsilonHigh']);

export const RUN_OPTIONS: CommandOptions = Object.fromEntries(
  RUN_FLAGS.map((row) => [
    row.flag,
    row.kind === 'boolean'
      ? { type: 'boolean', description: row.description }
      : { type: 'string', placeholder: PLACEHOLDERS[row.kind], description: `${row.description}${shownDefault(row)}` },
  ]),
);

function shownDefault({ path }: RunFlag): string {
  const value = path.split('.').reduce<unknown>((nested, key) => (nested as Record<string, unknown>)[key], DEFAULTS);
  return value === null || NO_DEFAULT.has(path) ? '' : ` [${JSON.stringify(value)}]`;
}

/** The values that were given, as nested fields: what is laid over the defaults. */
export function parseRunFlags(flags: Flags): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>();
  for (const row of RUN_FLAGS) {
    const value = flags[row.flag];
    if (value !== undefined) values.set(row.path, parseValue(row, value));
  }
  return values;
}

function parseValue({ flag, kind }: RunFlag, value: unknown): unknown {
  if (kind === 'boolean') return value === true;
  const text = String(value).trim();
  if (kind === 'text') return text;
  if (kind === 'list') return text.split(',').map((item) => item.trim());
  const number = Number(text);
  const isFine = text !== '' && (kind === 'integer' ? Number.isSafeInteger(number) : Number.isFinite(number));
  if (isFine) return number;
  const wanted = kind === 'integer' ? 'a whole number' : 'a number';
  throw new UsageError(
    `--${flag} must be ${wanted}, got ${JSON.stringify(text)}; pass --${flag} ${PLACEHOLDERS[kind]}`,
  );
}

/** The given values on top of the defaults, each held to its field's schema, then all of them to the rules between fields. */
export function applyRunFlags(
  start: Pick<RunOptions, 'run' | 'agent' | 'baseModel'>,
  values: ReadonlyMap<string, unknown>,
): RunConfig {
  const options: Record<string, unknown> = { ...start };
  for (const [path, value] of values) {
    checkField(path, value);
    setPath(options, path.split('.'), value);
  }
  try {
    return RunConfig.parse(defaultRunConfig(options as RunOptions));
  } catch (error) {
    if (error instanceof TemperError) throw new UsageError(nameFlags(error.message), { cause: error });
    throw error;
  }
}

function checkField(path: string, value: unknown): void {
  const result = fieldSchema(path).safeParse(value);
  const issue = result.error?.issues[0];
  if (issue === undefined) return;
  const row = RUN_FLAGS.find((candidate) => candidate.path === path)!;
  const because = row.because === undefined ? '' : ` (${row.because})`;
  throw new UsageError(
    `--${row.flag} must be ${describeRule(issue)}${because}, got ${JSON.stringify(value)}; see temper train --help`,
  );
}

function fieldSchema(path: string): z.ZodType {
  return path.split('.').reduce<z.ZodType>((schema, key) => (schema as z.ZodObject).shape[key] as z.ZodType, RunConfig);
}

function describeRule(issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small') return `${issue.inclusive === false ? 'greater than' : 'at least'} ${issue.minimum}`;
  if (issue.code === 'too_big') return `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`;
  if (issue.code === 'invalid_value') return `one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_format' && issue.format === 'regex') return `a name that matches ${issue.pattern}`;
  return `valid (${issue.message})`;
}

/** The rules between fields speak of fields; a person typed flags. */
function nameFlags(message: string): string {
  return RUN_FLAGS.reduce((text, { flag, path }) => {
    const field = path.split('.').at(-1)!;
    return field === flag ? text : text.replaceAll(new RegExp(`\\b${field}\\b`, 'g'), `--${flag}`);
  }, message);
}

function setPath(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key, ...rest] = path;
  if (key === undefined) return;
  if (rest.length === 0) target[key] = value;
  else setPath((target[key] ??= {}) as Record<string, unknown>, rest, value);
}
