/** Checkpoint that `--model` names, if any, and the base model that several of them share. */
import { badConfig } from '../../core/contract/failures.ts';
import type { Checkpoint, Prepared, RunConfig } from '../../core/contract/contract.ts';
import { parseTrainedName, policyName, type Policy } from '../../core/names/policy-name.ts';
import { isSupervisedOnly } from '../../core/rules/supervised.ts';
import { findConfiguredCheckpoint } from '../../store/records/runs/find-policy.ts';
import { adapterOfPolicy } from '../../store/records/runs/manifest.ts';
import { readManifest, readPrepared, readRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { describeBase, isSameBase, trainedBase, type TrainedBase } from '../../workers/config/loaded-base.ts';

/** Checkpoint of the store with its run's configuration when it was made. */
export interface CheckpointTarget {
  readonly model: string;
  readonly policy: Policy;
  readonly checkpoint: Checkpoint;
  readonly adapterSha256: string;
  readonly config: RunConfig;
  readonly base: TrainedBase;
  /** Scenarios of its run; null for a supervised run. */
  readonly prepared: Prepared | null;
}

/** Null if the name is not a checkpoint's, but a base model's. */
export async function findTarget(store: Store, model: string): Promise<CheckpointTarget | null> {
  const name = parseTrainedName(model);
  // A run's name alone may also be a base model's.
  if (name === null || (name.run === model && (await readRun(store, model)) === null)) return null;
  const { checkpoint, config } = await findConfiguredCheckpoint(store, name);
  const { run, branch, step } = checkpoint;
  const policy = { run, branch, step };
  const manifest = (await readManifest(store, policy))!;
  return {
    model: policyName({ ...policy, ...(name.policy && { policy: name.policy }) }),
    policy,
    checkpoint,
    adapterSha256: adapterOfPolicy(run, manifest, name.policy).sha256,
    config,
    base: trainedBase(manifest),
    prepared: isSupervisedOnly(config) ? null : await readPrepared(store, run),
  };
}

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
  throw badConfig(
    `--model must name checkpoints whose base model was loaded in one way, because one engine plays them all, got ${first.model} in ${describeBase(first.base)} and ${other.model} in ${describeBase(other.base)}; play them with two commands`,
  );
}
