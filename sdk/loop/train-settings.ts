/** The options of `model.train` and `model.trainSft`, and the settings that a step is trained with. */
import { TrainConfig as TrainConfigSchema, type SupervisedConfig, type TrainConfig } from '../../core/contract.ts';
import { badConfig } from '../../core/failures.ts';
import { roleTrainOptions } from '../../core/roles.ts';
import { defaultRunConfig, type RunOptions } from '../../core/run-defaults.ts';
import { findReference } from './kl-reference.ts';
import type { LoopRun } from './loop-run.ts';
import type { Messages, Tools } from './trajectory.ts';

export type TrainOptions = Partial<Omit<TrainConfig, 'lora' | 'loss' | 'optimizer' | 'klReference'>> &
  Pick<NonNullable<RunOptions['train']>, 'loss' | 'optimizer'> & {
    learningRate?: number;
    /** A trained checkpoint, as `run@step`: what `klCoefficient` charges a divergence from, in place of the base model. */
    klReference?: string;
    /** A group is trained only if at least this many of its attempts have a reward. */
    minimumGroupSize?: number;
    /** Allows a step without any sampled choice: it ends without training. */
    allowEmptyStep?: boolean;
  };

export interface TrainSftOptions extends Pick<
  TrainOptions,
  'learningRate' | 'optimizer' | 'microBatchTokens' | 'packing'
> {
  /** Which assistant messages of a chat are trained. */
  turns?: SupervisedConfig['turns'];
  /** The treatment of a chat above the token limit. */
  overlong?: SupervisedConfig['overlong'];
  /** The token limit of a chat; the default is the model's context window. */
  maxExampleTokens?: number;
  /** Chats that are only scored, after the step. */
  heldOut?: Iterable<Chat>;
}

/** A conversation whose assistant messages are trained. */
export interface Chat {
  messages: Messages;
  tools?: Tools | null;
  /** Shown in errors. */
  id?: string;
}

export interface TrainSettings {
  learningRate: number;
  minimumGroupSize: number;
  allowEmptyStep: boolean;
  train: TrainConfig;
}

/** How many groups there are to train, and the loss that stands in the store. */
interface Given {
  /** The called function, for errors. */
  readonly name?: 'model.train' | 'model.trainSft';
  readonly groups: number;
}

/** Fills in defaults and checks every value. */
export async function readSettings(
  run: LoopRun,
  options: TrainOptions,
  { name = 'model.train', groups }: Given,
): Promise<TrainSettings> {
  const { config } = run;
  const {
    learningRate = config.learningRate,
    minimumGroupSize = 2,
    allowEmptyStep = false,
    klReference: named,
    ...train
  } = options;
  const filled = fill(config, { ...train, ...(await findReference(run, named)) }, groups);
  const { error } = TrainConfigSchema.safeParse(filled);
  const issue = error?.issues[0];
  if (issue !== undefined)
    throw badConfig(
      `${name} has an invalid option${['', ...issue.path].join(' ')} (${issue.message}); see docs/imperative-api.md for the available options`,
    );
  if (!(Number.isFinite(learningRate) && learningRate >= 0))
    throw badConfig(`learningRate must be a number of at least 0, got ${learningRate}; pass 5e-5`);
  if (!Number.isSafeInteger(minimumGroupSize) || minimumGroupSize < 2)
    throw badConfig(
      `minimumGroupSize must be a whole number of at least 2 (an advantage is relative to its group), got ${minimumGroupSize}; pass 2`,
    );
  return { learningRate, minimumGroupSize, allowEmptyStep, train: filled };
}

function fill(config: LoopRun['config'], train: NonNullable<RunOptions['train']>, groups: number): TrainConfig {
  const { run, agent, baseModel, roles, competing } = config;
  const { lora, loss } = config.train;
  const filled = { loss, ...roleTrainOptions({ competing }), ...train, lora };
  const options = { run, agent, baseModel, ...(roles && { roles }), ...(competing && { competing }), train: filled };
  return defaultRunConfig(groups === 0 ? options : { ...options, groupsPerStep: groups }).train;
}
