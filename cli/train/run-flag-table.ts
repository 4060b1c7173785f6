/** The flags that make up a run's configuration: one row each, from the flag's name to the field it sets. */
import { DEFAULT_LOSS, LOSS_NAMES } from '../../core/contract.ts';

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

const OTHER_LOSSES = LOSS_NAMES.filter((name) => name !== DEFAULT_LOSS);

export const RUN_FLAGS: readonly RunFlag[] = [
  {
    flag: 'base-model',
    path: 'baseModel',
    kind: 'text',
    description: 'pocket, pocket-tools, a folder, or a name of the Hugging Face hub',
  },
  { flag: 'seed', path: 'seed', kind: 'integer', description: 'seed of all random choices' },
  {
    flag: 'steps',
    path: 'steps',
    kind: 'integer',
    description: 'optimizer steps',
    because: 'a run of no steps trains nothing',
  },
  { flag: 'groups-per-step', path: 'groupsPerStep', kind: 'integer', description: 'scenarios per step' },
  {
    flag: 'group-size',
    path: 'groupSize',
    kind: 'integer',
    description: 'attempts per scenario',
    because: 'an advantage is relative to its group',
  },
  {
    flag: 'minimum-group-size',
    path: 'minimumGroupSize',
    kind: 'integer',
    description: 'minimum of successful attempts for a group to be trained',
  },
  {
    flag: 'replacement-rounds',
    path: 'replacementRounds',
    kind: 'integer',
    description: 'how often a step replaces groups with identical rewards by new scenarios',
  },
  {
    flag: 'max-scenarios',
    path: 'maxScenarios',
    kind: 'integer',
    description: 'maximum number of training scenarios',
  },
  {
    flag: 'eval-scenarios',
    path: 'evalScenarios',
    kind: 'integer',
    description: 'maximum number of held-out scenarios',
  },
  {
    flag: 'eval-every',
    path: 'evalEvery',
    kind: 'integer',
    description: 'also evaluate every N steps; 0: only before and after training',
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
    description: 'final learning rate, as a share of the initial one',
  },
  {
    flag: 'warmup-steps',
    path: 'warmupSteps',
    kind: 'integer',
    description: 'steps of linear warm-up',
  },
  { flag: 'weight-decay', path: 'train.optimizer.weightDecay', kind: 'number', description: 'weight decay of AdamW' },
  {
    flag: 'max-grad-norm',
    path: 'train.optimizer.maxGradNorm',
    kind: 'number',
    description: 'gradient clipping norm',
  },
  { flag: 'beta1', path: 'train.optimizer.beta1', kind: 'number', description: 'beta1 of AdamW' },
  { flag: 'beta2', path: 'train.optimizer.beta2', kind: 'number', description: 'beta2 of AdamW' },
  { flag: 'adam-epsilon', path: 'train.optimizer.epsilon', kind: 'number', description: 'epsilon of AdamW' },
  { flag: 'lora-rank', path: 'train.lora.rank', kind: 'integer', description: 'rank of the adapter' },
  { flag: 'lora-alpha', path: 'train.lora.alpha', kind: 'number', description: 'scale of the adapter: alpha / rank' },
  {
    flag: 'lora-target-modules',
    path: 'train.lora.targetModules',
    kind: 'list',
    description: 'comma-separated module names; default: every linear layer except the output head',
  },
  {
    flag: 'temperature',
    path: 'rollout.temperature',
    kind: 'number',
    description: 'sampling temperature in training and evaluation',
  },
  {
    flag: 'max-tokens',
    path: 'rollout.maxTokens',
    kind: 'integer',
    description: 'token limit of a call that sets none',
  },
  {
    flag: 'max-calls-per-attempt',
    path: 'rollout.maxCallsPerAttempt',
    kind: 'integer',
    description: 'maximum number of calls per attempt; more fail the attempt',
  },
  {
    flag: 'attempt-timeout-ms',
    path: 'rollout.attemptTimeoutMs',
    kind: 'integer',
    description: 'time limit of an attempt; waiting for an unavailable engine does not count',
  },
  { flag: 'call-timeout-ms', path: 'rollout.callTimeoutMs', kind: 'integer', description: 'time limit of one call' },
  {
    flag: 'call-retry-budget-ms',
    path: 'rollout.callRetryBudgetMs',
    kind: 'integer',
    description: 'how long a call is retried while the engine is unavailable',
  },
  {
    flag: 'loss',
    path: 'train.loss.name',
    kind: 'text',
    description: `${DEFAULT_LOSS}; ${OTHER_LOSSES.join(' and ')} have no effect yet, and are refused`,
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
    description: 'baseline of an attempt is the mean of the others in its group',
  },
  {
    flag: 'truncated',
    path: 'train.truncated',
    kind: 'text',
    description: 'attempts cut off by a token limit: mask, penalise or keep',
  },
  {
    flag: 'max-logprob-mismatch',
    path: 'train.maxLogprobMismatch',
    kind: 'number',
    description: 'maximum difference between sampler and trainer (mean k3); above it the step fails',
  },
  {
    flag: 'micro-batch-tokens',
    path: 'train.microBatchTokens',
    kind: 'integer',
    description: 'tokens per micro-batch; more is faster and needs more memory',
  },
  {
    flag: 'judge',
    path: 'judge',
    kind: 'text',
    description: "judge to use instead of the agent's: provider/model",
  },
  {
    flag: 'max-judge-usd',
    path: 'maxJudgeUsd',
    kind: 'number',
    description: 'budget of the judge for the whole run; the run pauses before exceeding it',
  },
  {
    flag: 'continue-as-new-every',
    path: 'continueAsNewEvery',
    kind: 'integer',
    description: 'steps after which the workflow continues as new, with a fresh history',
  },
];
