/** The flags that make up a run's configuration: one row each, from the flag's name to the field it sets. */
export type FlagKind = 'integer' | 'number' | 'boolean' | 'text' | 'list';

export interface RunFlag {
  readonly flag: string;
  /** Where the value stands in RunConfig, e.g. `train.lora.rank`. */
  readonly path: string;
  readonly kind: FlagKind;
  readonly description: string;
  /** Said in parentheses when the rule is broken. */
  readonly because?: string;
}

export const RUN_FLAGS: readonly RunFlag[] = [
  {
    flag: 'base-model',
    path: 'baseModel',
    kind: 'text',
    description: 'pocket, pocket-tools, a folder, or a name of the Hugging Face hub',
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
  {
    flag: 'loss',
    path: 'train.loss.name',
    kind: 'text',
    description: 'cispo; ppo and importance_sampling have no effect yet, and are refused',
  },
  {
    flag: 'epsilon-low',
    path: 'train.loss.epsilonLow',
    kind: 'number',
    description: 'lower end of the range that the ratio is clipped to; no effect yet, refused',
  },
  {
    flag: 'epsilon-high',
    path: 'train.loss.epsilonHigh',
    kind: 'number',
    description: 'upper end of that range; no effect yet, refused',
  },
  {
    flag: 'dual-clip',
    path: 'train.loss.dualClip',
    kind: 'number',
    description: "ppo's bound for negative advantages; no effect yet, refused",
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
    flag: 'judge',
    path: 'judge',
    kind: 'text',
    description: 'provider/model that judges instead of the one that the agent names',
  },
  {
    flag: 'max-judge-usd',
    path: 'maxJudgeUsd',
    kind: 'number',
    description: 'the run pauses before its judge costs more than this in all',
  },
  {
    flag: 'continue-as-new-every',
    path: 'continueAsNewEvery',
    kind: 'integer',
    description: 'steps after which the workflow starts a fresh history',
  },
];
