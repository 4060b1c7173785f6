/** Committed checkpoints by a person's name for them, with what their run says of them. */
import type { BlobRef, Checkpoint, RunConfig } from '../../../core/contract/contract.ts';
import { badConfig, type TemperError } from '../../../core/contract/failures.ts';
import { policyName, type CheckpointName, type TrainedName } from '../../../core/names/policy-name.ts';
import { configAt } from '../../../core/rules/settings.ts';
import { findCheckpoint } from './find-checkpoint.ts';
import { readAllChanges } from './lineage.ts';
import { adapterOfPolicy, type Manifest } from './manifest.ts';
import { readPruned } from './pruned.ts';
import { readCommit, requireRunFile, type RunFile } from './run-reader.ts';
import type { Store } from '../../store.ts';

export interface ConfiguredCheckpoint {
  readonly checkpoint: Checkpoint;
  readonly file: RunFile;
  /** Rollout settings of its run when the checkpoint was made. */
  readonly config: RunConfig;
}

/** A policy of a checkpoint whose weights can be used. */
export interface TrainedPolicy extends ConfiguredCheckpoint {
  /** Name under which engines serve it: `run@step` or `run~branch@step`, and `:policy` for another one than `main`. */
  readonly name: string;
  readonly manifest: Manifest;
  /** A LoRA adapter, or all weights. */
  readonly adapter: BlobRef;
}

/** Refused if there is no such checkpoint. */
export async function findConfiguredCheckpoint(store: Store, wanted: CheckpointName): Promise<ConfiguredCheckpoint> {
  const checkpoint = await findCheckpoint(store, wanted);
  const file = await requireRunFile(store, checkpoint.run);
  const { changes } = await readAllChanges(store, checkpoint.run);
  return { checkpoint, file, config: configAt(file.config, changes, checkpoint) };
}

/** Refused if there is no such checkpoint or policy, or where its weights are gone. */
export async function findTrainedPolicy(store: Store, wanted: TrainedName): Promise<TrainedPolicy> {
  const configured = await findConfiguredCheckpoint(store, wanted);
  const { checkpoint } = configured;
  const { manifest } = (await readCommit(store, checkpoint))!;
  const name = policyName({ ...checkpoint, ...(wanted.policy && { policy: wanted.policy }) });
  const adapter = adapterOfPolicy(checkpoint.run, manifest, wanted.policy);
  if ((await readPruned(store, checkpoint)) === true) throw pruned(name, checkpoint.run);
  for (const ref of [adapter, manifest.adapterConfig]) await store.getBlob(ref);
  return { ...configured, name, manifest, adapter };
}

/** Whether it is more than its base model: a fresh adapter computes nothing. */
export function hasLearned({ manifest, file }: TrainedPolicy): boolean {
  return manifest.step > 0 || manifest.parent !== null || file.config.startAdapter !== undefined;
}

function pruned(name: string, run: string): TemperError {
  const remedy = `name a step that was kept (temper checkpoints ${run} lists them), or bring them back from a copy: temper checkpoints pull ${run} STORE --with-pruned`;
  return badConfig(`the weights of ${name} must be in the store, but they were pruned on purpose; ${remedy}`);
}
