/** Flags of a run's configuration, one row each: from the flag's name to the field that it sets. */
import { CHAT_TEMPLATE_FLAG } from '../command-line/command.ts';
import { LORA_FLAGS } from './lora-flag-table.ts';
import { LOSS_FLAGS } from './loss-flag-table.ts';
import type { RunFlag } from './run-flag.ts';

export const RUN_FLAGS = {
  'base-model': {
    kind: 'text',
    placeholder: 'MODEL',
    path: 'baseModel',
    also: 'model',
    description: 'pocket, pocket-tools, a folder, a name of the Hugging Face hub, or s3://BUCKET/PREFIX',
  },
  seed: { kind: 'integer', placeholder: 'N', path: 'seed', description: 'seed of all random choices' },
  steps: {
    kind: 'integer',
    placeholder: 'N',
    path: 'steps',
    description: 'optimizer steps',
    because: 'a run of no steps trains nothing',
  },
  'groups-per-step': { kind: 'integer', placeholder: 'N', path: 'groupsPerStep', description: 'scenarios per step' },
  'group-size': {
    kind: 'integer',
    placeholder: 'N',
    path: 'groupSize',
    description: 'attempts per scenario',
    because: 'an advantage is relative to its group',
  },
  'minimum-group-size': {
    kind: 'integer',
    placeholder: 'N',
    path: 'minimumGroupSize',
    description: 'minimum of successful attempts for a group to be trained',
  },
  'replacement-rounds': {
    kind: 'integer',
    placeholder: 'N',
    path: 'replacementRounds',
    description: 'how often a step replaces groups with identical rewards by new scenarios',
  },
  'max-scenarios': {
    kind: 'integer',
    placeholder: 'N',
    path: 'maxScenarios',
    description: 'maximum number of training scenarios',
  },
  'eval-scenarios': {
    kind: 'integer',
    placeholder: 'N',
    path: 'evalScenarios',
    description: 'maximum number of held-out scenarios',
  },
  'eval-every': {
    kind: 'integer',
    placeholder: 'N',
    path: 'evalEvery',
    description: 'also evaluate every N steps; 0: only before and after training',
  },
  'learning-rate': {
    kind: 'number',
    placeholder: 'X',
    path: 'learningRate',
    description: 'learning rate of AdamW; with --full-fine-tuning the default is a tenth',
  },
  'learning-rate-schedule': {
    kind: 'text',
    placeholder: 'NAME',
    path: 'learningRateSchedule',
    description: 'constant, linear or cosine',
  },
  'final-learning-rate-share': {
    kind: 'number',
    placeholder: 'X',
    path: 'finalLearningRateShare',
    description: 'final learning rate, as a share of the initial one',
  },
  'learning-rate-restarts': {
    kind: 'integer',
    placeholder: 'N',
    path: 'learningRateRestarts',
    description: 'with the schedule cosine: how often it starts again at the full rate; 0: never',
  },
  'warmup-steps': { kind: 'integer', placeholder: 'N', path: 'warmupSteps', description: 'steps of linear warm-up' },
  'weight-decay': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.optimizer.weightDecay',
    description: 'weight decay of AdamW',
  },
  'max-grad-norm': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.optimizer.maxGradNorm',
    description: 'gradient clipping norm',
  },
  optimizer: {
    kind: 'choice',
    choices: ['adamw', 'adamw_8bit'],
    placeholder: 'NAME',
    path: 'train.optimizer.kind',
    description: 'adamw or adamw_8bit, which keeps its moments in 8 bits, for less memory',
  },
  beta1: { kind: 'number', placeholder: 'X', path: 'train.optimizer.beta1', description: 'beta1 of AdamW' },
  beta2: { kind: 'number', placeholder: 'X', path: 'train.optimizer.beta2', description: 'beta2 of AdamW' },
  'adam-epsilon': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.optimizer.epsilon',
    description: 'epsilon of AdamW',
  },
  ...LORA_FLAGS,
  temperature: {
    kind: 'number',
    placeholder: 'X',
    path: 'rollout.temperature',
    description: 'sampling temperature in training and evaluation',
  },
  'max-tokens': {
    kind: 'integer',
    placeholder: 'N',
    path: 'rollout.maxTokens',
    description: 'token limit of a call that sets none',
  },
  'chat-template': { ...CHAT_TEMPLATE_FLAG, path: 'rollout.chatTemplateSha256' },
  'chat-template-kwargs': {
    kind: 'json',
    placeholder: 'JSON',
    path: 'rollout.chatTemplateKwargs',
    description: 'variables of the chat template, for calls that set none',
  },
  'max-calls-per-attempt': {
    kind: 'integer',
    placeholder: 'N',
    path: 'rollout.maxCallsPerAttempt',
    description: 'maximum number of calls per attempt; more fail the attempt',
  },
  'attempt-timeout-ms': {
    kind: 'integer',
    placeholder: 'N',
    path: 'rollout.attemptTimeoutMs',
    description: 'time limit of an attempt; waiting for an unavailable engine does not count',
  },
  'call-timeout-ms': {
    kind: 'integer',
    placeholder: 'N',
    path: 'rollout.callTimeoutMs',
    description: 'time limit of one call',
  },
  'call-retry-budget-ms': {
    kind: 'integer',
    placeholder: 'N',
    path: 'rollout.callRetryBudgetMs',
    description: 'how long a call is retried while the engine is unavailable',
  },
  ...LOSS_FLAGS,
  'advantage-scale': {
    kind: 'text',
    placeholder: 'NAME',
    path: 'train.advantageScale',
    description: 'none, group-std or batch-std',
  },
  'leave-one-out': {
    kind: 'boolean',
    negatable: true,
    path: 'train.leaveOneOut',
    description: 'baseline of an attempt is the mean of the others in its group',
  },
  truncated: {
    kind: 'text',
    placeholder: 'NAME',
    path: 'train.truncated',
    description: 'attempts cut off by a token limit: mask, penalise or keep',
  },
  'overlong-buffer': {
    kind: 'integer',
    placeholder: 'N',
    path: 'train.overlongBuffer',
    description: 'tokens before the limit of a call in which its answer costs reward, more with each',
  },
  'overlong-penalty': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.overlongPenalty',
    description: 'what an answer at its limit costs, with --overlong-buffer',
  },
  'max-logprob-mismatch': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.maxLogprobMismatch',
    description:
      'maximum difference between sampler and trainer (mean k3); above it, or ten times it below float32, the step fails',
  },
  'micro-batch-tokens': {
    kind: 'integer',
    placeholder: 'N',
    path: 'train.microBatchTokens',
    description: 'tokens per micro-batch; more is faster and needs more memory',
  },
  packing: {
    kind: 'text',
    placeholder: 'NAME',
    path: 'train.packing',
    description: 'tree computes a token that several rows begin with once; rows computes each row alone',
  },
  judge: {
    kind: 'text',
    placeholder: 'NAME',
    path: 'judge',
    description: "judge to use instead of the agent's: provider/model",
  },
  'max-judge-usd': {
    kind: 'number',
    placeholder: 'X',
    path: 'maxJudgeUsd',
    description: 'budget of the judge for the whole run; the run pauses before exceeding it',
  },
  'max-staleness': {
    kind: 'integer',
    placeholder: 'N',
    path: 'maxStaleness',
    description: 'play up to N steps ahead of training, sampled from checkpoints that many steps older',
  },
  'continue-as-new-every': {
    kind: 'integer',
    placeholder: 'N',
    path: 'continueAsNewEvery',
    description: 'steps after which the workflow continues as new, with a fresh history',
  },
} satisfies Readonly<Record<string, RunFlag>>;

export const RUN_FLAG_ROWS: readonly (readonly [flag: string, row: RunFlag])[] = Object.entries(RUN_FLAGS);

export function pickRunFlags<Name extends keyof typeof RUN_FLAGS>(names: readonly Name[]) {
  return Object.fromEntries(names.map((name) => [name, RUN_FLAGS[name]])) as Pick<typeof RUN_FLAGS, Name>;
}
