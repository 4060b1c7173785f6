/** The options of the SDK's functions and classes. Others are refused: a typo would silently run another experiment. */
import { TrainConfig } from '../../core/contract.ts';
import { badConfig } from '../../core/failures.ts';

type Presence = 'required' | 'optional';

const GATHER = {
  model: 'required',
  split: 'optional',
  afterEach: 'optional',
  concurrency: 'optional',
  pbarDesc: 'optional',
  onProgress: 'optional',
} as const;

/** Every field of a step's configuration but the adapter's, which the model has. */
const ofTraining = Object.fromEntries(
  Object.keys(TrainConfig.omit({ lora: true }).shape).map((name) => [name, 'optional']),
) as Readonly<Record<Exclude<keyof TrainConfig, 'lora'>, 'optional'>>;

const MCP = {
  isolate: 'optional',
  replay: 'optional',
  prefix: 'optional',
  only: 'optional',
  resources: 'optional',
  maxResultBytes: 'optional',
  startTimeoutMs: 'optional',
  callTimeoutMs: 'optional',
  idleMs: 'optional',
} as const;

/** Not typed by the options themselves: everything in the SDK imports this file. `test/sdk/option-tables.ts` holds the two together. */
export const OPTION_TABLES = {
  defineAgent: {
    name: 'required',
    scenarios: 'required',
    evalScenarios: 'optional',
    spreadBy: 'optional',
    captureModel: 'optional',
    reward: 'optional',
    rewards: 'optional',
    rewardGroup: 'optional',
    resources: 'optional',
    mcp: 'optional',
    roles: 'optional',
    competing: 'optional',
    rollout: 'required',
  },
  resource: {
    scope: 'required',
    setup: 'required',
    teardown: 'required',
    setupTimeoutMs: 'optional',
    teardownTimeoutMs: 'optional',
  },
  league: { every: 'required', keep: 'required', of: 'optional' },
  command: { env: 'optional', files: 'optional', rewrite: 'optional', concurrency: 'optional', result: 'optional' },
  jsonl: { map: 'optional' },
  csv: { map: 'optional', delimiter: 'optional' },
  parquet: { map: 'optional' },
  sqlite: { map: 'optional' },
  hf: { map: 'optional', config: 'optional', split: 'optional', revision: 'optional', via: 'optional' },
  Model: {
    name: 'required',
    project: 'required',
    config: 'optional',
    inferenceBaseUrl: 'optional',
    inferenceApiKey: 'optional',
    inferenceModelName: 'optional',
  },
  TrainableModel: {
    name: 'required',
    project: 'required',
    baseModel: 'required',
    config: 'optional',
    seed: 'optional',
    lora: 'optional',
    adapter: 'optional',
    roles: 'optional',
    competing: 'optional',
    rollout: 'optional',
  },
  workflowAgent: {
    name: 'required',
    scenarios: 'required',
    evalScenarios: 'optional',
    spreadBy: 'optional',
    workflow: 'required',
    taskQueue: 'required',
    args: 'optional',
    memo: 'optional',
    headers: 'optional',
    reward: 'required',
    interact: 'optional',
    modelParams: 'optional',
    rerouteActivities: 'optional',
    sandboxQueue: 'optional',
    address: 'optional',
    namespace: 'optional',
    profile: 'optional',
    dataConverter: 'optional',
  },
  LocalBackend: { folder: 'optional', onEvent: 'optional', env: 'optional' },
  'backend.forkCheckpoint': { fromModel: 'required', fromProject: 'optional', notAfterStep: 'optional' },
  Trajectory: {
    messagesAndChoices: 'required',
    tools: 'optional',
    reward: 'required',
    turnRewards: 'optional',
    metrics: 'optional',
    metadata: 'optional',
    logs: 'optional',
    additionalHistories: 'optional',
    explanation: 'optional',
    origin: 'optional',
  },
  TrajectoryGroup: { metadata: 'optional' },
  gatherTrajectoryGroups: { ...GATHER, maxExceptions: 'optional' },
  trajectoryGroupBatches: {
    ...GATHER,
    batchSize: 'required',
    maxBatchExceptions: 'optional',
    skipBatches: 'optional',
  },
  iterateDataset: { groupsPerStep: 'optional', numEpochs: 'optional', initialStep: 'optional', seed: 'optional' },
  'model.train': {
    ...ofTraining,
    learningRate: 'optional',
    minimumGroupSize: 'optional',
    allowEmptyStep: 'optional',
  },
  'model.trainSft': {
    learningRate: 'optional',
    turns: 'optional',
    overlong: 'optional',
    maxExampleTokens: 'optional',
    heldOut: 'optional',
    optimizer: 'optional',
    microBatchTokens: 'optional',
    packing: 'optional',
  },
  'model.deleteCheckpoints': { bestCheckpointMetric: 'optional' },
  retry: {
    maxAttempts: 'optional',
    delayMs: 'optional',
    backoffFactor: 'optional',
    shouldRetry: 'optional',
    onRetry: 'optional',
  },
  tool: {
    name: 'required',
    description: 'optional',
    parameters: 'optional',
    run: 'required',
    once: 'optional',
    ends: 'optional',
  },
  toolLoop: {
    messages: 'required',
    tools: 'required',
    maxTurns: 'optional',
    maxTokens: 'optional',
    maxTokensPerTurn: 'optional',
    concurrent: 'optional',
    turnReward: 'optional',
    request: 'optional',
  },
  mcp: { command: 'required', args: 'optional', env: 'optional', ...MCP },
  'mcp.url': { url: 'required', headers: 'optional', keyVariable: 'optional', ...MCP },
  playAgent: {
    scenario: 'required',
    answers: 'required',
    hosted: 'optional',
    seed: 'optional',
    temperature: 'optional',
    rules: 'optional',
  },
  ruler: {
    judge: 'required',
    rubric: 'optional',
    weights: 'optional',
    usdPerMillionInput: 'optional',
    usdPerMillionOutput: 'optional',
    maxCharsPerAttempt: 'optional',
    request: 'optional',
  },
  external: { name: 'optional', timeoutMs: 'optional', onTimeout: 'optional', minimum: 'optional' },
  review: {
    pairwise: 'optional',
    comparisonsPerAttempt: 'optional',
    reviewers: 'optional',
    question: 'optional',
    timeoutMs: 'optional',
    onTimeout: 'optional',
    minimum: 'optional',
    weights: 'optional',
  },
  'ruler.judge': { baseUrl: 'required', model: 'required', name: 'optional', keyVariable: 'optional' },
  'ruler.context': {
    store: 'optional',
    engine: 'optional',
    env: 'optional',
    signal: 'optional',
    callTimeoutMs: 'optional',
    callRetryBudgetMs: 'optional',
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Presence>>>>;

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
