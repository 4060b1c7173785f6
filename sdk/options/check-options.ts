/** The options of the SDK's functions and classes. Others are refused: a typo would silently run another experiment. */
import { TrainConfig } from '../../core/contract/contract.ts';
import { badConfig } from '../../core/contract/failures.ts';

type Presence = 'required' | 'optional';

type Presences<R extends string, O extends string> = Readonly<Record<R, 'required'> & Record<O, 'optional'>>;

/** Names of required options, and of optional ones. */
function takes<const R extends string, const O extends string>(
  required: readonly R[],
  optional: readonly O[],
): Presences<R, O> {
  const presences = [...required.map((name) => [name, 'required']), ...optional.map((name) => [name, 'optional'])];
  return Object.fromEntries(presences) as Presences<R, O>;
}

const GATHER = takes(['model'], ['split', 'afterEach', 'concurrency', 'pbarDesc', 'onProgress']);

/** Every field of a step's configuration but the adapter's, which the model has. */
const ofTraining = Object.fromEntries(
  Object.keys(TrainConfig.omit({ lora: true }).shape).map((name) => [name, 'optional']),
) as Readonly<Record<Exclude<keyof TrainConfig, 'lora'>, 'optional'>>;

const MCP = takes(
  [],
  ['isolate', 'replay', 'prefix', 'only', 'resources', 'maxResultBytes', 'startTimeoutMs', 'callTimeoutMs', 'idleMs'],
);

/** Not typed by the options themselves: everything in the SDK imports this file. `test/sdk/option-tables.ts` holds the two together. */
export const OPTION_TABLES = {
  defineAgent: takes(
    ['name', 'scenarios', 'rollout'],
    [
      'evalScenarios',
      'spreadBy',
      'captureModel',
      'reward',
      'rewards',
      'rewardGroup',
      'resources',
      'mcp',
      'roles',
      'competing',
    ],
  ),
  resource: takes(['scope', 'setup', 'teardown'], ['setupTimeoutMs', 'teardownTimeoutMs']),
  league: takes(['every', 'keep'], ['of']),
  command: takes([], ['env', 'files', 'rewrite', 'concurrency', 'result']),
  jsonl: takes([], ['map']),
  csv: takes([], ['map', 'delimiter']),
  parquet: takes([], ['map']),
  sqlite: takes([], ['map']),
  hf: takes([], ['map', 'config', 'split', 'revision', 'via']),
  Model: takes(['name', 'project'], ['config', 'inferenceBaseUrl', 'inferenceApiKey', 'inferenceModelName']),
  TrainableModel: takes(
    ['name', 'project', 'baseModel'],
    ['config', 'seed', 'lora', 'adapter', 'roles', 'competing', 'rollout'],
  ),
  workflowAgent: takes(
    ['name', 'scenarios', 'workflow', 'taskQueue', 'reward'],
    [
      'evalScenarios',
      'spreadBy',
      'args',
      'memo',
      'headers',
      'interact',
      'modelParams',
      'rerouteActivities',
      'sandboxQueue',
      'address',
      'namespace',
      'profile',
      'dataConverter',
    ],
  ),
  LocalBackend: takes([], ['folder', 'onEvent', 'env']),
  'backend.forkCheckpoint': takes(['fromModel'], ['fromProject', 'notAfterStep']),
  Trajectory: takes(
    ['messagesAndChoices', 'reward'],
    ['tools', 'turnRewards', 'metrics', 'metadata', 'logs', 'additionalHistories', 'explanation', 'origin'],
  ),
  TrajectoryGroup: takes([], ['metadata']),
  gatherTrajectoryGroups: { ...GATHER, ...takes([], ['maxExceptions']) },
  trajectoryGroupBatches: { ...GATHER, ...takes(['batchSize'], ['maxBatchExceptions', 'skipBatches']) },
  iterateDataset: takes([], ['groupsPerStep', 'numEpochs', 'initialStep', 'seed']),
  'model.train': { ...ofTraining, ...takes([], ['learningRate', 'minimumGroupSize', 'allowEmptyStep']) },
  'model.trainSft': takes(
    [],
    ['learningRate', 'turns', 'overlong', 'maxExampleTokens', 'heldOut', 'optimizer', 'microBatchTokens', 'packing'],
  ),
  'model.deleteCheckpoints': takes([], ['bestCheckpointMetric']),
  retry: takes([], ['maxAttempts', 'delayMs', 'backoffFactor', 'shouldRetry', 'onRetry']),
  tool: takes(['name', 'run'], ['description', 'parameters', 'once', 'ends']),
  toolLoop: takes(
    ['messages', 'tools'],
    ['maxTurns', 'maxTokens', 'maxTokensPerTurn', 'concurrent', 'turnReward', 'request'],
  ),
  mcp: { ...takes(['command'], ['args', 'env']), ...MCP },
  'mcp.url': { ...takes(['url'], ['headers', 'keyVariable']), ...MCP },
  playAgent: takes(['scenario', 'answers'], ['hosted', 'seed', 'temperature', 'rules']),
  ruler: takes(
    ['judge'],
    ['rubric', 'weights', 'usdPerMillionInput', 'usdPerMillionOutput', 'maxCharsPerAttempt', 'request'],
  ),
  external: takes([], ['name', 'timeoutMs', 'onTimeout', 'minimum']),
  review: takes(
    [],
    ['pairwise', 'comparisonsPerAttempt', 'reviewers', 'question', 'timeoutMs', 'onTimeout', 'minimum', 'weights'],
  ),
  'ruler.judge': takes(['baseUrl', 'model'], ['name', 'keyVariable']),
  'ruler.context': takes([], ['store', 'engine', 'env', 'signal', 'callTimeoutMs', 'callRetryBudgetMs']),
} satisfies Readonly<Record<string, Readonly<Record<string, Presence>>>>;

type TakesOptions = keyof typeof OPTION_TABLES;

/** Throws BadConfig if an option is unknown or a required one is missing; returns the options. */
export function checkOptions<T>(of: TakesOptions, options: T): T {
  const complaint = findProblem(of, options);
  if (complaint !== null) throw badConfig(complaint);
  return options;
}

function findProblem(of: TakesOptions, options: unknown): string | null {
  const table: Readonly<Record<string, string>> = OPTION_TABLES[of];
  const known = Object.keys(table);
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    return `${of} must be given an object of options, got ${JSON.stringify(options) ?? String(options)}; pass { ${known.join(', ')} }`;
  const given = options as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(table, name));
  if (unknown !== undefined)
    return `${of} has the options ${known.join(', ')}, got ${unknown}; correct its name, or remove it`;
  const missing = known.find((name) => table[name] === 'required' && given[name] === undefined);
  return missing === undefined ? null : `${of} must be given ${missing}, got none; pass { ${missing}: … }`;
}

interface CountRule {
  readonly least: number;
  /** The value that the message suggests. */
  readonly example: number;
}

/** Throws BadConfig unless the value is absent or a whole number of at least `least`. */
export function checkCount(name: string, value: number | undefined, { least, example }: CountRule): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return;
  throw badConfig(`${name} must be a whole number of at least ${least}, got ${String(value)}; pass ${example}`);
}
