/** What a run is where nobody said otherwise (docs: algorithms, defaults). */
import { findConfigProblem } from './config-rules.ts';
import type { LossConfig, OptimizerConfig, LoraConfig, RolloutConfig, RunConfig, TrainConfig } from './contract.ts';
import { TemperError } from './failures.ts';
import { canonicalJson } from './hashes.ts';
import { findLossProblem, fillLoss } from './loss-options.ts';

const MINUTE_MS = 60_000;

export const DEFAULT_ROLLOUT: RolloutConfig = {
  temperature: 1,
  maxTokens: 512,
  maxCallsPerAttempt: 64,
  attemptTimeoutMs: 10 * MINUTE_MS,
  callTimeoutMs: 2 * MINUTE_MS,
  callRetryBudgetMs: 5 * MINUTE_MS,
};

/** Attempts of a group, and of an evaluation. As many fill an engine's batches; more would only wait. */
export const ATTEMPTS_AT_ONCE = 128;
export const EVAL_ATTEMPTS_AT_ONCE = 64;

const LORA: LoraConfig = { rank: 16, alpha: 32, targetModules: null };

const OPTIMIZER: OptimizerConfig = { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 };

const TRAIN: Omit<TrainConfig, 'lora' | 'loss' | 'optimizer'> = {
  advantageScale: 'none',
  leaveOneOut: false,
  truncated: 'mask',
  maxLogprobMismatch: 1e-3,
  microBatchTokens: 16_384,
  packing: 'tree',
};

/** Recorded as absent: runs from before such an option have the same bytes, and the same configuration. */
export const NEUTRAL_TRAIN = {
  passes: 1,
  miniBatches: 1,
  reduction: 'token',
  klCoefficient: 0,
  klAs: 'loss',
  klEstimator: 'k3',
  entropyCoefficient: 0,
  overlongBuffer: 0,
  packing: 'rows',
} satisfies Partial<TrainConfig>;

/** The same of LoRA's options. */
export const NEUTRAL_LORA = { dropout: 0, rslora: false, dora: false } satisfies Partial<LoraConfig>;

/** Of the optimizer's: the schema does not know its name, so that it cannot be recorded. */
export const NEUTRAL_OPTIMIZER = { kind: 'adamw' } as const;

/**
 * Of a correction for a sampler that differs: of a ratio; of the geometric mean of a sequence's ratios, and of its
 * inverse where only a policy that has moved far is meant (0.5 nats a token, what TRL begins with).
 */
const RATIO_CAP = 2;
const GEOMETRIC_CAP = 1.01;
const OFF_POLICY_CAP = 1.65;

/** Of an answer as long as it may be, as in DAPO's paper: as much as a right answer is worth. */
const OVERLONG_PENALTY = 1;

const RUN: Omit<RunConfig, 'run' | 'agent' | 'baseModel' | 'finalLearningRateShare' | 'rollout' | 'train'> = {
  seed: 1,
  steps: 100,
  groupsPerStep: 8,
  groupSize: 8,
  minimumGroupSize: 2,
  replacementRounds: 1,
  maxScenarios: 10_000,
  evalScenarios: 200,
  evalEvery: 0,
  learningRate: 5e-5,
  learningRateSchedule: 'constant',
  warmupSteps: 0,
  continueAsNewEvery: null,
  judge: null,
  maxJudgeUsd: null,
  parent: null,
};

/** Where all weights are trained: about a tenth of an adapter's. */
const FULL_LEARNING_RATE = 5e-6;

type OptimizerOptions = Partial<Omit<OptimizerConfig, 'kind'>> & {
  kind?: OptimizerConfig['kind'] | typeof NEUTRAL_OPTIMIZER.kind;
};

/** What a starter must say (`run`, `agent`, `baseModel`) and may say. */
export type RunOptions = Pick<RunConfig, 'run' | 'agent' | 'baseModel'> &
  Partial<Omit<RunConfig, 'rollout' | 'train'>> & {
    rollout?: Partial<RolloutConfig>;
    train?: Partial<Omit<TrainConfig, 'lora' | 'loss' | 'optimizer'>> & {
      lora?: Partial<LoraConfig> | null;
      loss?: Partial<LossConfig>;
      optimizer?: OptimizerOptions;
    };
  };

/**
 * Defaults filled in and the rules between fields checked; single fields are the schema's business. A loss that a run was
 * `recorded` with is taken again: that run goes on as it is.
 */
export function defaultRunConfig(options: RunOptions, recorded: LossConfig | null = null): RunConfig {
  const train = options.train ?? {};
  const schedule = options.learningRateSchedule ?? RUN.learningRateSchedule;
  const { maxStaleness = 0, ...others } = options;
  const config: RunConfig = {
    ...RUN,
    ...(train.lora === null ? { learningRate: FULL_LEARNING_RATE } : {}),
    finalLearningRateShare: schedule === 'constant' ? 1 : 0.1,
    ...others,
    // As of `NEUTRAL_TRAIN`: none is recorded as absent.
    ...(maxStaleness === 0 ? {} : { maxStaleness }),
    rollout: { ...DEFAULT_ROLLOUT, ...options.rollout },
    train: {
      ...withoutNeutral({ ...TRAIN, ...train }, NEUTRAL_TRAIN),
      ...capOf(train),
      ...estimatorOf(train),
      ...penaltyOf(train),
      lora: train.lora === null ? null : withoutNeutral({ ...LORA, ...train.lora }, NEUTRAL_LORA),
      loss: fillLoss(train.loss ?? {}),
      optimizer: fillOptimizer(train.optimizer ?? {}),
    },
  };
  checkRunConfig(config, recorded);
  return config;
}

function fillOptimizer({ kind, ...others }: OptimizerOptions): OptimizerConfig {
  return { ...OPTIMIZER, ...others, ...(kind === undefined || kind === NEUTRAL_OPTIMIZER.kind ? {} : { kind }) };
}

function capOf({
  correction,
  correctionCap,
}: Pick<Partial<TrainConfig>, 'correction' | 'correctionCap'>): Pick<TrainConfig, 'correctionCap'> {
  if (correction === undefined || correctionCap !== undefined) return {};
  if (correction === 'off-policy-mask') return { correctionCap: OFF_POLICY_CAP };
  return { correctionCap: correction === 'geometric' ? GEOMETRIC_CAP : RATIO_CAP };
}

/** That of k3 alone is the gradient of another divergence. */
function estimatorOf({
  klCoefficient = 0,
  klAs,
  klEstimator,
}: Pick<Partial<TrainConfig>, 'klCoefficient' | 'klAs' | 'klEstimator'>): Pick<TrainConfig, 'klEstimator'> {
  return klCoefficient === 0 || klAs === 'reward' || klEstimator !== undefined ? {} : { klEstimator: 'k3-ratio' };
}

function penaltyOf({
  overlongBuffer = 0,
  overlongPenalty = OVERLONG_PENALTY,
}: Pick<Partial<TrainConfig>, 'overlongBuffer' | 'overlongPenalty'>): Pick<TrainConfig, 'overlongPenalty'> {
  return overlongBuffer === 0 ? {} : { overlongPenalty };
}

function withoutNeutral<T extends object>(options: T, values: Partial<T>): T {
  const neutral = new Map<string, unknown>(Object.entries(values));
  const kept = Object.entries(options).filter(([name, value]) => !neutral.has(name) || neutral.get(name) !== value);
  return Object.fromEntries(kept) as T;
}

/**
 * Of a run that exists, what is taken again whatever is the default today: how rows and micro-batches are laid, and what
 * stands for a divergence. None of a new one.
 */
export function recordedDefaults(recorded: RunConfig | null): Pick<TrainConfig, 'packing'> & Partial<TrainConfig> {
  if (recorded === null) return {};
  const { packing = 'rows', microBatchTokens, klCoefficient, klAs, klEstimator } = recorded.train;
  const hasPlainK3 = klCoefficient !== undefined && klAs !== 'reward' && klEstimator === undefined;
  return { packing, microBatchTokens, ...(hasPlainK3 ? { klEstimator: 'k3' } : {}) };
}

/** Refuses what contradicts itself or would have no effect: an option that does nothing is a wrong experiment. */
function checkRunConfig(config: RunConfig, recorded: LossConfig | null): void {
  const isNewLoss = recorded === null || canonicalJson(recorded) !== canonicalJson(config.train.loss);
  const complaint = findConfigProblem(config) ?? (isNewLoss ? findLossProblem(config) : null);
  if (complaint !== null) throw new TemperError('BadConfig', complaint);
}
