/** What `--model` names: a checkpoint `run@step`, a run (its last step), a base model, or any model behind `--base-url`. */
import { NAME_PATTERN } from '../../core/contract.ts';
import type { Prepared, RunConfig } from '../../core/contract.ts';
import { branchOfStep } from '../../core/lineage.ts';
import { parsePolicyName, policyName } from '../../core/policy-name.ts';
import type { Policy } from '../../core/policy-name.ts';
import { readStanding } from '../../store/records/find-checkpoint.ts';
import { readManifest, readPrepared, readRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { UsageError } from '../command-line/errors.ts';

/** A checkpoint of the store, with the configuration that it was trained under. */
export interface CheckpointTarget {
  readonly model: string;
  readonly policy: Policy;
  readonly adapterSha256: string;
  readonly config: RunConfig;
  readonly prepared: Prepared | null;
}

/** Null where the name is no run's: it is a base model then. */
export async function findCheckpoint(store: Store, model: string): Promise<CheckpointTarget | null> {
  const policy = parsePolicyName(model) ?? (await lastStep(store, model));
  if (policy === null) return null;
  const run = await readRun(store, policy.run);
  if (run === null) throw new UsageError(`no run ${policy.run} in the store ${store.uri}; see temper runs`);
  const manifest = await readManifest(store, policy);
  if (manifest === null) {
    throw new UsageError(
      `${policyName(policy)} is not committed (${policy.run} is at step ${run.state?.step ?? 0}); pass another step, or ${policy.run}`,
    );
  }
  return {
    model: policyName(policy),
    policy,
    adapterSha256: manifest.adapter.sha256,
    config: run.file.config,
    prepared: await readPrepared(store, policy.run),
  };
}

/** What the run stands on: steps that trained nothing are not committed. */
async function lastStep(store: Store, name: string): Promise<Policy | null> {
  if (!NAME_PATTERN.test(name)) return null;
  const run = await readRun(store, name);
  if (run === null) return null;
  const standing = run.state && (await readStanding(store, run.state));
  if (standing !== null) return { run: name, branch: standing.branch, step: standing.step };
  const step = run.state?.step ?? 0;
  return { run: name, branch: branchOfStep(run.state?.lineage ?? [], step), step };
}
