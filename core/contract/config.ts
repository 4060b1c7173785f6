/**
 * Contract types of a run and of what its store holds. A field added later has a default in `schema-defaults.ts`, or is
 * optional. Fields that a user sets carry their text for help and docs.
 */
import { z } from 'zod';

import { ExternalConfig, ProductionConfig, SupervisedConfig } from './sources.ts';
import { LossConfig } from './losses.ts';
import { LoraConfig, OptimizerConfig } from './optimizer.ts';
import { optionsOf } from './options.ts';
import { Checkpoint, Role } from './roles.ts';
import {
  baseModel,
  BlobRef,
  count,
  judgeName,
  name,
  positive,
  roleName,
  sha256,
  StartAdapter,
  templateKwargs,
} from './values.ts';
import { SCHEMA_DEFAULTS } from './schema-defaults.ts';

const { train: TRAIN, ...RUN } = SCHEMA_DEFAULTS;

/** Upper bound of `maxStaleness`: n + 1 checkpoints ride in the workflow's state. */
const MAX_STALENESS = 16;

const ofRun = optionsOf('run');
const ofGroups = optionsOf('groups');
const ofEvaluation = optionsOf('evaluation');
const ofOptimizer = optionsOf('optimizer');
const ofRollouts = optionsOf('rollouts');
const ofLoss = optionsOf('loss');
const ofJudge = optionsOf('judge');
const ofCosts = optionsOf('costs');

/** Settings of one optimizer step, beside its parent and its groups. */
export const TrainConfig = z
  .strictObject({
    optimizer: OptimizerConfig,
    lora: ofOptimizer(
      LoraConfig.nullable(),
      '[train all weights](training.md#train-all-weights) of the base model instead of a LoRA adapter; not with vLLM',
      {
        isMain: true,
        flag: 'full-fine-tuning',
        kind: 'boolean',
        value: null,
        more: 'refused with `--lora-…`, `--adapter` and `--load-in-4bit`',
      },
    ),
    passes: ofLoss(
      positive.default(TRAIN.passes),
      'how often a step [trains its groups](training.md#passes-and-mini-batches)',
    ),
    miniBatches: ofLoss(
      positive.default(TRAIN.miniBatches),
      'optimizer updates per pass, each on a part of the groups',
      { more: 'at most `--groups-per-step`' },
    ),
    loss: LossConfig,
    reduction: ofLoss(
      z.enum(['token', 'attempt', 'constant']).default(TRAIN.reduction),
      'what counts the same [in the loss](training.md#losses): `token`, `attempt` or `constant`',
    ),
    reductionTokens: ofLoss(
      positive.optional(),
      'tokens that an attempt counts as, with `--reduction constant`, which requires it',
    ),
    correction: ofLoss(
      z
        .enum([
          'none',
          'token-truncate',
          'token-mask',
          'sequence-truncate',
          'sequence-mask',
          'geometric',
          'off-policy-mask',
        ])
        .default(TRAIN.correction),
      '[for a sampler that differs](training.md#correct-for-a-sampler-that-differs) from the trainer: `token-truncate`, `token-mask`, `sequence-truncate`, `sequence-mask`, `geometric`, `off-policy-mask` or `none`',
    ),
    correctionCap: ofLoss(
      z.number().gt(1).optional(),
      'largest ratio of trainer to sampler that `--correction` accepts',
      { default: '2; 1.01 for `geometric`, 1.65 for `off-policy-mask`' },
    ),
    klCoefficient: ofLoss(
      z.number().min(0).default(TRAIN.klCoefficient),
      'cost of a [divergence](training.md#stay-near-the-base-model-or-explore) from the base model or `--kl-reference`',
    ),
    klReference: ofLoss(BlobRef.optional(), 'checkpoint that `--kl-coefficient` keeps the policy near', {
      placeholder: 'CHECKPOINT',
      default: 'the base model',
    }),
    klAs: ofLoss(
      z.enum(['loss', 'reward']).default(TRAIN.klAs),
      'where `--kl-coefficient` is charged: `loss` or `reward`',
    ),
    /** `k3-ratio` weighs k3 by the ratio to the sampler. */
    klEstimator: ofLoss(
      z.enum(['k3', 'k3-ratio']).default(TRAIN.klEstimator),
      'what [stands for the divergence](training.md#stay-near-the-base-model-or-explore) in the loss: `k3-ratio`, or `k3` as in GRPO',
    ),
    entropyCoefficient: ofLoss(
      z.number().min(0).default(TRAIN.entropyCoefficient),
      'what a nat of entropy is worth in the loss',
    ),
    advantageScale: ofLoss(z.enum(['none', 'group-std', 'batch-std']), '`none`, `group-std` or `batch-std`'),
    baseline: ofLoss(
      z.enum(['group', 'rae']).default(TRAIN.baseline),
      'what a reward is [compared with](training.md#choose-the-advantage): `group`, the mean of its group, or `rae`, the running mean of its role',
      { flag: 'advantage-baseline', default: '`group`; `rae` for an agent whose roles compete' },
    ),
    leaveOneOut: ofLoss(z.boolean(), 'baseline of an attempt is the mean of the others in its group'),
    truncated: ofLoss(
      z.enum(['mask', 'penalise', 'keep']),
      'attempts cut off by a token limit: `mask`, `penalise` or `keep`',
    ),
    overlongBuffer: ofLoss(
      count.default(TRAIN.overlongBuffer),
      "tokens before a call's limit in which its answer [costs reward](training.md#choose-the-advantage)",
    ),
    /** 1, as in DAPO's paper: as much as a right answer is worth. */
    overlongPenalty: ofLoss(
      z.number().positive().default(TRAIN.overlongPenalty),
      'what an answer at its limit costs, with `--overlong-buffer`',
    ),
    /** Mean k3 = ρ − log ρ − 1 before the update; above it the step is `PolicyMismatch`. */
    maxLogprobMismatch: ofLoss(
      z.number().positive(),
      'maximum difference between sampler and trainer (mean k3); above it, or ten times it below float32, the step fails',
    ),
    /** Padding counts, shared tokens count once; changes memory and speed, not the result beyond rounding. */
    microBatchTokens: ofLoss(positive, 'tokens per micro-batch; more is faster and needs more memory', {
      more: 'lower [where memory is short](engine.md#check-whether-a-model-fits)',
      isSupervised: true,
    }),
    packing: ofLoss(
      z.enum(['rows', 'tree']).default(TRAIN.packing),
      '`tree` [computes shared prefixes once](training.md#compute-shared-prefixes-once), `rows` each row separately',
      { isSupervised: true },
    ),
  })
  .meta({ id: 'TrainConfig' });
export type TrainConfig = z.infer<typeof TrainConfig>;

/** How attempts are played. */
export const RolloutConfig = z
  .strictObject({
    temperature: ofRollouts(z.number().positive().max(2), 'sampling temperature in training and evaluation', {
      isMain: true,
    }),
    maxTokens: ofRollouts(positive, 'token limit of a call that sets none', { isMain: true }),
    /** Hash of the Jinja template, which is in the store. */
    chatTemplateSha256: ofRollouts(sha256.optional(), 'Jinja [chat template](engine.md#build-prompts)', {
      flag: 'chat-template',
      placeholder: 'FILE',
      default: "the model's own",
      isSupervised: true,
    }),
    chatTemplateKwargs: ofRollouts(
      templateKwargs.optional(),
      'variables of the chat template, for calls that set none',
      { more: 'for example `\'{"enable_thinking":false}\'`', isSupervised: true },
    ),
    maxCallsPerAttempt: ofRollouts(positive, 'maximum number of calls per attempt; more fail the attempt'),
    attemptTimeoutMs: ofRollouts(
      positive,
      'time limit of an attempt; waiting for an unavailable engine does not count',
    ),
    callTimeoutMs: ofRollouts(positive, 'time limit of one call'),
    callRetryBudgetMs: ofRollouts(count, 'how long a call is retried while the engine is unavailable'),
  })
  .meta({ id: 'RolloutConfig' });
export type RolloutConfig = z.infer<typeof RolloutConfig>;

/** Configuration of a run: parsed once, recorded in `run.json`, compared when the name is used again. */
export const RunConfig = z
  .strictObject({
    run: name,
    agent: name,
    baseModel: ofRun(
      baseModel,
      '`pocket`, `pocket-tools`, a folder, a name of the Hugging Face hub, or `s3://BUCKET/PREFIX`',
      {
        isMain: true,
        placeholder: 'MODEL',
        also: 'model',
        more: 'also `OWNER/NAME@REVISION`, or a name of [`models`](configuration.md#temporalconfigts); `--model` is the same flag',
        default: 'required',
        isSupervised: true,
      },
    ),
    seed: ofRun(z.int().min(0), 'seed of all random choices', { isMain: true, isSupervised: true }),
    steps: ofRun(positive, 'optimizer steps', { isMain: true, because: 'a run of no steps trains nothing' }),
    groupsPerStep: ofGroups(positive, 'scenarios per step', { isMain: true, more: 'at most 2,000' }),
    groupSize: ofGroups(z.int().min(2), 'attempts per scenario', {
      isMain: true,
      because: 'an advantage is relative to its group',
    }),
    minimumGroupSize: ofGroups(z.int().min(2), 'minimum of successful attempts for a group to be trained'),
    replacementRounds: ofGroups(
      count,
      'how often a step replaces groups with identical rewards; 0 with external rewards',
    ),
    maxScenarios: ofGroups(positive, 'maximum number of training scenarios'),
    evalScenarios: ofEvaluation(positive, 'maximum number of held-out scenarios; of more, a fixed sample'),
    evalEvery: ofEvaluation(count, 'also evaluate every N steps; 0: only before and after training', {
      isMain: true,
      isSupervised: true,
    }),
    learningRate: ofOptimizer(z.number().min(0), 'learning rate of AdamW', {
      isMain: true,
      default: '5e-5; 5e-6 with `--full-fine-tuning`',
    }),
    learningRateSchedule: ofOptimizer(z.enum(['constant', 'linear', 'cosine']), '`constant`, `linear` or `cosine`', {
      isMain: true,
    }),
    finalLearningRateShare: ofOptimizer(
      z.number().min(0).max(1),
      'final learning rate, as a share of the initial one',
      { default: '1 if constant, else 0.1' },
    ),
    learningRateRestarts: ofOptimizer(
      count.default(RUN.learningRateRestarts),
      'with the schedule `cosine`: how often it starts again at the full rate; 0: never',
    ),
    warmupSteps: ofOptimizer(count, 'steps of linear warm-up'),
    train: TrainConfig,
    rollout: RolloutConfig,
    /** Name alone: the agent says what the judge is and how it is reached. Null: the agent itself gives the rewards. */
    judge: ofJudge(judgeName.nullable(), '[judge](ruler.md): `provider/model` or `engine/…`', {
      isMain: true,
      default: "the agent's",
    }),
    gpuUsdPerHour: ofCosts(
      z.number().min(0).nullable().default(RUN.gpuUsdPerHour),
      '[price of the hardware](cost.md#during-a-run) in US dollars per hour of work',
      { isSupervised: true },
    ),
    maxCostUsd: ofCosts(
      z.number().min(0).nullable().default(RUN.maxCostUsd),
      '[budget](cost.md#set-a-budget) for hardware, judge and hosted models; the run pauses before exceeding it',
      { isMain: true, isSupervised: true },
    ),
    maxHours: ofCosts(
      z.number().min(0).nullable().default(RUN.maxHours),
      '[budget](cost.md#set-a-budget) of working time, without pauses; the run pauses before exceeding it',
      { isSupervised: true },
    ),
    /** Step s samples from the checkpoint after step s − 1 − maxStaleness. */
    maxStaleness: ofRun(
      count.max(MAX_STALENESS).default(RUN.maxStaleness),
      'play up to N steps [ahead of training](training.md#overlap-rollouts-and-training)',
      { more: `at most ${MAX_STALENESS}, and less than \`--steps\`` },
    ),
    /** Open groups that a step may have beyond those that it trains. */
    groupsAhead: ofRun(
      count.default(RUN.groupsAhead),
      'while groups wait for external rewards, play up to N [further groups](external-rewards.md#train-on-the-groups-that-are-complete)',
      { more: 'at most 500 together with `--groups-per-step`' },
    ),
    maxRewardStaleness: ofRun(
      positive.max(MAX_STALENESS).default(RUN.maxRewardStaleness),
      'with `--groups-ahead`: leave out groups whose policy is more than N optimizer steps old',
    ),
    keepAll: ofRun(
      z.boolean().default(RUN.keepAll),
      'keep [weights and optimizer states](checkpoints.md#what-a-run-stores) of all checkpoints',
      { isSupervised: true },
    ),
    continueAsNewEvery: ofRun(positive.nullable(), 'steps after which the workflow continues as new', {
      default: 'when Temporal suggests it',
      isSupervised: true,
    }),
    /** Checkpoint of another run that provides this one's bytes; null: a fresh adapter. */
    parent: Checkpoint.nullable(),
    /** Source of the first checkpoint; absent: a fresh adapter, or the parent's. */
    startAdapter: StartAdapter.optional(),
    /** Players of the agent's roles; absent: it has none, and the one policy plays. */
    roles: z.record(roleName, Role).optional(),
    /** The roles' rewards oppose each other; absent: they do not. */
    competing: z.literal(true).optional(),
    /** Rewards given from outside, where the judge is `external` or `review`; absent: there are none. */
    external: ExternalConfig.optional(),
    /** Steps that are trained on examples; absent: there are none. */
    supervised: SupervisedConfig.optional(),
    /** Recorded conversations that all steps train; absent: the agent is played. */
    production: ProductionConfig.optional(),
  })
  .meta({ id: 'RunConfig' });
export type RunConfig = z.infer<typeof RunConfig>;
