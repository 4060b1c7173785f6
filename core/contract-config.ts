/**
 * The part of the contract that says what a run is, and what stands in its store. A later option has a default, which
 * `schema-defaults.ts` holds, or is optional.
 */
import { z } from 'zod';

import { LossConfig } from './contract-losses.ts';
import { SupervisedConfig } from './contract-supervised.ts';
import { baseModel, BlobRef, count, judgeName, name, positive, sha256, templateKwargs } from './contract-values.ts';
import { SCHEMA_DEFAULTS } from './schema-defaults.ts';

const { train: TRAIN, ...RUN } = SCHEMA_DEFAULTS;
const { lora: LORA, optimizer: OPTIMIZER } = TRAIN;

/** So many checkpoints and one are carried along; far fewer are of use. */
const MAX_STALENESS = 16;

/** LoRA as PEFT means it: `targetModules` null means every linear layer but the output head. */
export const LoraConfig = z
  .strictObject({
    rank: positive.max(512),
    alpha: z.number().positive(),
    targetModules: z.array(z.string()).min(1).nullable(),
    /** Share of each adapted layer's inputs that the adapter does not see in training. */
    dropout: z.number().min(0).lt(1).default(LORA.dropout),
    /** rsLoRA: the adapter is scaled by alpha / √rank instead of alpha / rank. */
    rslora: z.boolean().default(LORA.rslora),
    /** DoRA: the lengths of the matrices' rows are trained by themselves. */
    dora: z.boolean().default(LORA.dora),
    /** Numbers of the layers that are adapted, from 0 on, ascending; absent: all of them. */
    layers: z
      .array(count)
      .min(1)
      .refine((layers) => layers.every((layer, at) => at === 0 || layer > layers[at - 1]!), 'numbers must ascend')
      .optional(),
  })
  .meta({ id: 'LoraConfig' });
export type LoraConfig = z.infer<typeof LoraConfig>;

export const OptimizerConfig = z
  .strictObject({
    /** `adamw` keeps its moments in float32, `adamw_8bit` in 8 bits, block by block (arXiv 2110.02861). */
    kind: z.enum(['adamw', 'adamw_8bit']).default(OPTIMIZER.kind),
    beta1: z.number().min(0).lt(1),
    beta2: z.number().min(0).lt(1),
    epsilon: z.number().positive(),
    weightDecay: z.number().min(0),
    maxGradNorm: z.number().positive(),
  })
  .meta({ id: 'OptimizerConfig' });
export type OptimizerConfig = z.infer<typeof OptimizerConfig>;

/** What one optimizer step needs to know beside its parent and its groups. */
export const TrainConfig = z
  .strictObject({
    /** Null: no adapter, but all weights of the base model are trained. */
    lora: LoraConfig.nullable(),
    loss: LossConfig,
    optimizer: OptimizerConfig,
    advantageScale: z.enum(['none', 'group-std', 'batch-std']),
    leaveOneOut: z.boolean(),
    truncated: z.enum(['mask', 'penalise', 'keep']),
    /** Largest mean k3 = ρ − log ρ − 1 between sampler and trainer before the update; above it the step is `PolicyMismatch`. */
    maxLogprobMismatch: z.number().positive(),
    /** Upper bound of tokens in one micro-batch, padding included, shared ones once; changes memory and speed, not the result beyond rounding. */
    microBatchTokens: positive,
    /** How rows are laid in micro-batches: `tree` computes a token that several rows begin with once. */
    packing: z.enum(['rows', 'tree']).default(TRAIN.packing),
    /** How often a step goes over its groups. */
    passes: positive.default(TRAIN.passes),
    /** Into how many parts of whole groups each pass is cut, with an update for each. */
    miniBatches: positive.default(TRAIN.miniBatches),
    /** What each token counts in the loss; `token`: the mean over all tokens. */
    reduction: z.enum(['token', 'attempt', 'constant']).default(TRAIN.reduction),
    /** Of `constant`: how many tokens an attempt counts as, whatever its length. */
    reductionTokens: positive.optional(),
    /** How tokens are weighed or masked that sampler and trainer see differently. */
    correction: z
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
    /** Of the ratio of trainer to sampler; given wherever there is a correction. */
    correctionCap: z.number().gt(1).optional(),
    /** What a divergence from the reference costs. */
    klCoefficient: z.number().min(0).default(TRAIN.klCoefficient),
    /** The adapter of another checkpoint that it is a divergence from; absent: the base model. */
    klReference: BlobRef.optional(),
    /** Where it is charged. */
    klAs: z.enum(['loss', 'reward']).default(TRAIN.klAs),
    /** What stands for it in the loss: `k3-ratio` weighs k3 by the ratio to the sampler. */
    klEstimator: z.enum(['k3', 'k3-ratio']).default(TRAIN.klEstimator),
    /** What a nat of entropy is worth. */
    entropyCoefficient: z.number().min(0).default(TRAIN.entropyCoefficient),
    /** So many of the last tokens that a call may sample cost the attempt a part of the penalty. */
    overlongBuffer: count.default(TRAIN.overlongBuffer),
    /** What an answer as long as it may be costs in training; 1, as in DAPO's paper: as much as a right answer is worth. */
    overlongPenalty: z.number().positive().default(TRAIN.overlongPenalty),
  })
  .meta({ id: 'TrainConfig' });
export type TrainConfig = z.infer<typeof TrainConfig>;

/** How attempts are played. */
export const RolloutConfig = z
  .strictObject({
    temperature: z.number().positive().max(2),
    /** Default of `max_tokens` for a call that names none. */
    maxTokens: positive,
    maxCallsPerAttempt: positive,
    attemptTimeoutMs: positive,
    callTimeoutMs: positive,
    /** How long one call is retried while the engine refuses, answers 429 or 5xx. */
    callRetryBudgetMs: count,
    /** Variables of the model's chat template, such as `enable_thinking`, for calls that do not set them themselves. */
    chatTemplateKwargs: templateKwargs.optional(),
    /** Of the Jinja template in the place of the model's own: it stands in the store under this hash. Absent: the model's own. */
    chatTemplateSha256: sha256.optional(),
  })
  .meta({ id: 'RolloutConfig' });
export type RolloutConfig = z.infer<typeof RolloutConfig>;

/** One commit of a branch: which bytes stand under `run@step`. */
export const Checkpoint = z
  .strictObject({ run: name, branch: count, step: count, manifestSha256: sha256, adapterSha256: sha256 })
  .meta({ id: 'Checkpoint' });
export type Checkpoint = z.infer<typeof Checkpoint>;

/** The two files of a PEFT adapter from elsewhere, as they are. */
export const StartAdapter = z.strictObject({ weights: BlobRef, config: BlobRef }).meta({ id: 'StartAdapter' });
export type StartAdapter = z.infer<typeof StartAdapter>;

/** What a run is: parsed once from agent file and flags, recorded in `run.json`, compared when the name is used again. */
export const RunConfig = z
  .strictObject({
    run: name,
    agent: name,
    baseModel,
    seed: z.int().min(0),
    steps: positive,
    groupsPerStep: positive,
    groupSize: z.int().min(2),
    /** Attempts a group must have left, after failures, to be trained. */
    minimumGroupSize: z.int().min(2),
    /** How often a step may deal fresh scenarios for groups without variance. */
    replacementRounds: count,
    maxScenarios: positive,
    evalScenarios: positive,
    /** Evaluate after every n steps besides before the first and after the last; 0: only those two. */
    evalEvery: count,
    learningRate: z.number().min(0),
    learningRateSchedule: z.enum(['constant', 'linear', 'cosine']),
    /** Share of the learning rate left at the last step. */
    finalLearningRateShare: z.number().min(0).max(1),
    /** Of `cosine`: how often the learning rate goes back to its full height and decays again. */
    learningRateRestarts: count.default(RUN.learningRateRestarts),
    warmupSteps: count,
    continueAsNewEvery: positive.nullable(),
    /**
     * How many steps may be played ahead of the one that trains: step s samples from the checkpoint after step
     * s − 1 − maxStaleness. With 0 each step is trained before the next one is played.
     */
    maxStaleness: count.max(MAX_STALENESS).default(RUN.maxStaleness),
    /** What gives the rewards, by its name; what it is and how it is reached says the agent. Null: the agent itself. */
    judge: judgeName.nullable(),
    /** The run is paused before a step that would make its judge cost more than this in all; null: no bound. */
    maxJudgeUsd: z.number().min(0).nullable(),
    /** The checkpoint of another run whose bytes this one begins with; null: a fresh adapter. */
    parent: Checkpoint.nullable(),
    /** What the first checkpoint is made from; absent: a fresh adapter, or the parent's. */
    startAdapter: StartAdapter.optional(),
    rollout: RolloutConfig,
    train: TrainConfig,
    /** Steps that are trained on examples; absent: there are none. */
    supervised: SupervisedConfig.optional(),
  })
  .meta({ id: 'RunConfig' });
export type RunConfig = z.infer<typeof RunConfig>;
