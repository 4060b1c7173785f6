/** Checkpoint that `--model` names, if any. */
import type { Checkpoint, Prepared, RunConfig } from '../../core/contract.ts';
import { parseTrainedName, policyName, type Policy } from '../../core/policy-name.ts';
import { isSupervisedOnly } from '../../core/supervised.ts';
import { findCheckpoint } from '../../store/records/find-checkpoint.ts';
import { adapterOfPolicy } from '../../store/records/manifest.ts';
import { readManifest, readPrepared, readRun, requireRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { trainedBase, type TrainedBase } from '../../workers/config/loaded-base.ts';

/** Checkpoint of the store with its run's configuration. */
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
  const checkpoint = await findCheckpoint(store, name);
  const { run, branch, step } = checkpoint;
  const { file } = await requireRun(store, run);
  const policy = { run, branch, step };
  const manifest = (await readManifest(store, policy))!;
  return {
    model: policyName({ ...policy, ...(name.policy && { policy: name.policy }) }),
    policy,
    checkpoint,
    adapterSha256: adapterOfPolicy(run, manifest, name.policy).sha256,
    config: file.config,
    base: trainedBase(manifest),
    prepared: isSupervisedOnly(file.config) ? null : await readPrepared(store, run),
  };
}
