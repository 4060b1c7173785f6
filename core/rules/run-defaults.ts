/** Default configuration of a run (docs: algorithms, defaults). */
import { findConfigProblem } from './config-rules.ts';
import type {
  LossConfig,
  OptimizerConfig,
  LoraConfig,
  RolloutConfig,
  RunConfig,
  TrainConfig,
} from '../contract/contract.ts';
import { badConfig } from '../contract/failures.ts';
import { findLossProblem, fillLoss } from './loss-options.ts';
import { fillDefaults, SCHEMA_DEFAULTS } from '../contract/schema-defaults.ts';

const MINUTE_MS = 60_000;

export const DEFAULT_ROLLOUT: RolloutConfig = {
  temperature: 1,
  maxTokens: 512,
  maxCallsPerAttempt: 64,
  attemptTimeoutMs: 10 * MINUTE_MS,
  callTimeoutMs: 2 * MINUTE_MS,
  callRetryBudgetMs: 5 * MINUTE_MS,
};

/** Values of a new run. They are recorded, so that another version may choose others. */
const USUAL = {
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
  parent: null,
  rollout: { ...DEFAULT_ROLLOUT },
  train: {
    lora: { rank: 16, alpha: 32, targetModules: null },
    optimizer: { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 },
    advantageScale: 'none',
    leaveOneOut: false,
    truncated: 'mask',
    maxLogprobMismatch: 1e-3,
    microBatchTokens: 16_384,
  },
} as const;

/** Attempts of a group, and of an evaluation. As many fill an engine's batches; more would only wait. */
export const ATTEMPTS_AT_ONCE = 128;
export const EVAL_ATTEMPTS_AT_ONCE = 64;

/**
 * Caps of the correction for a sampler that differs: of a ratio; of the geometric mean of a sequence's ratios, and of
 * its inverse if only large drift is meant (0.5 nats a token, TRL's default).
 */
const RATIO_CAP = 2;
const GEOMETRIC_CAP = 1.01;
const OFF_POLICY_CAP = 1.65;

/** Learning rate for training all weights: about a tenth of an adapter's. */
const FULL_LEARNING_RATE = 5e-6;

/** Options that a starter must give (`run`, `agent`, `baseModel`) and may give. */
export type RunOptions = Pick<RunConfig, 'run' | 'agent' | 'baseModel'> &
  Partial<Omit<RunConfig, 'rollout' | 'train'>> & {
    rollout?: Partial<RolloutConfig>;
    train?: Partial<Omit<TrainConfig, 'lora' | 'loss' | 'optimizer'>> & {
      lora?: Partial<LoraConfig> | null;
      loss?: Partial<LossConfig>;
      optimizer?: Partial<OptimizerConfig>;
    };
  };

/** Defaults filled in and the rules between fields checked; single fields are the schema's business. */
export function defaultRunConfig(options: RunOptions): RunConfig {
  const { train = {}, learningRateSchedule: schedule = USUAL.learningRateSchedule } = options;
  const given = {
    ...(train.lora === null ? { learningRate: FULL_LEARNING_RATE } : {}),
    finalLearningRateShare: schedule === 'constant' ? 1 : 0.1,
    ...(options.external === undefined ? {} : { replacementRounds: 0 }),
    ...options,
    train: { ...train, ...capOf(train), loss: fillLoss(train.loss ?? {}) },
  };
  const config = fillDefaults(fillDefaults(given, USUAL), SCHEMA_DEFAULTS) as RunConfig;
  const complaint = findConfigProblem(config) ?? findLossProblem(config);
  // An option that does nothing is a wrong experiment.
  if (complaint !== null) throw badConfig(complaint);
  return config;
}

function capOf({
  correction = 'none',
  correctionCap,
}: Pick<Partial<TrainConfig>, 'correction' | 'correctionCap'>): Pick<TrainConfig, 'correctionCap'> {
  if (correction === 'none' || correctionCap !== undefined) return {};
  if (correction === 'off-policy-mask') return { correctionCap: OFF_POLICY_CAP };
  return { correctionCap: correction === 'geometric' ? GEOMETRIC_CAP : RATIO_CAP };
}

/** Row layout and micro-batch size: planned for a machine, and kept by a run that continues this one. */
export function layoutOf(run: RunConfig | null): Partial<Pick<TrainConfig, 'packing' | 'microBatchTokens'>> {
  return run === null ? {} : { packing: run.train.packing, microBatchTokens: run.train.microBatchTokens };
}
