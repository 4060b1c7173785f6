/** Checkpoints are played on their base model as they were trained on it: one engine plays all of them, so they must agree. */
import { checkTrainedWeights } from '../../core/engine-rules.ts';
import type { EngineConfig } from '../../workers/config/config.ts';
import { describeBase, isSameBase, type LoadedBase, type TrainedBase } from '../../workers/config/loaded-base.ts';
import { UsageError } from '../command-line/errors.ts';
import type { CheckpointTarget } from './target.ts';

export interface PlayedBase extends TrainedBase {
  /** A checkpoint that was trained on it. */
  readonly checkpoint: string;
}

/** Null where no checkpoint is played: base models are played as the local stack loads them. */
export function findPlayedBase(checkpoints: readonly CheckpointTarget[]): PlayedBase | null {
  const [first, ...others] = checkpoints;
  if (first === undefined) return null;
  const other = others.find(({ base }) => !isSameBase(base, first.base));
  if (other === undefined) return { ...first.base, checkpoint: first.model };
  throw new UsageError(
    `--model must name checkpoints whose base model was loaded in one way, because one engine plays them all, got ${first.model} in ${describeBase(first.base)} and ${other.model} in ${describeBase(other.base)}; play them with two commands`,
  );
}

/** Engine settings for the local stack. */
export function engineFor(played: PlayedBase, engine: EngineConfig): EngineConfig {
  const { dtype, loadIn4bit, checkpoint } = played;
  checkTrainedWeights(`${checkpoint} must be played`, { ...engine, loadIn4bit });
  // Parts of packed weights are not supported, and nothing is trained.
  const ofWholeWeights = loadIn4bit ? { shardBaseModel: false } : {};
  return { ...engine, dtype, loadIn4bit, ...ofWholeWeights };
}

/** Checks a local stack that another command started. */
export function checkPlayedBase(played: PlayedBase, loaded: LoadedBase): void {
  if (isSameBase(played, loaded)) return;
  throw new UsageError(
    `${played.checkpoint} must be played with its base model as it was trained, in ${describeBase(played)}, but the local stack of this project runs already and loads base models in ${describeBase(loaded)}; stop that stack first`,
  );
}
