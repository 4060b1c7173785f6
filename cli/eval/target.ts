/** What `--model` names on the local stack: a checkpoint, or else a base model. */
import type { Prepared, RunConfig } from '../../core/contract.ts';
import { parseCheckpointName, policyName, type Policy } from '../../core/policy-name.ts';
import { isSupervisedOnly } from '../../core/supervised.ts';
import { findCheckpoint } from '../../store/records/find-checkpoint.ts';
import { readManifest, readPrepared, readRun, requireRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { trainedBase, type TrainedBase } from '../../workers/config/loaded-base.ts';

/** A checkpoint of the store, with the configuration that it was trained under. */
export interface CheckpointTarget {
  readonly model: string;
  readonly policy: Policy;
  readonly adapterSha256: string;
  readonly config: RunConfig;
  readonly base: TrainedBase;
  /** The scenarios that its run was made for; null where it has none: of chats, say. */
  readonly prepared: Prepared | null;
}

/** Null where the name is no checkpoint's: it is a base model then. */
export async function findTarget(store: Store, model: string): Promise<CheckpointTarget | null> {
  const name = parseCheckpointName(model);
  // A run alone looks like a base model.
  if (name === null || (name.run === model && (await readRun(store, model)) === null)) return null;
  const { run, branch, step, adapterSha256 } = await findCheckpoint(store, name);
  const { file } = await requireRun(store, run);
  const policy = { run, branch, step };
  return {
    model: policyName(policy),
    policy,
    adapterSha256,
    config: file.config,
    base: trainedBase((await readManifest(store, policy))!),
    prepared: isSupervisedOnly(file.config) ? null : await readPrepared(store, run),
  };
}
