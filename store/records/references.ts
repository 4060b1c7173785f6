/** Blobs that configurations and steps name besides weights. Ended runs are verified against them, too. */
import type { BlobRef, RunConfig } from '../../core/contract.ts';
import { listSteps } from './checkpoints.ts';
import type { Manifest } from './manifest.ts';
import { listRuns, readCommit, readRun } from './run-reader.ts';
import { readActiveSchedules } from './schedules.ts';
import type { Store } from '../store.ts';

/** The adapter that steps charge a divergence from, if any. */
export function referencesOf(
  named: { readonly train?: { klReference?: BlobRef | undefined } | null } | null,
): BlobRef[] {
  return [named?.train?.klReference ?? []].flat();
}

/** Without the chat template, of which a configuration has the hash alone. */
export function blobsOfConfig(config: RunConfig): BlobRef[] {
  const { supervised, production, startAdapter } = config;
  const data = [...(supervised ? [supervised.dataset] : []), ...(production ? [production.recordings] : [])];
  return [...data, ...referencesOf(config), ...Object.values(startAdapter ?? {})];
}

/** A script brings examples, and names what steps are compared with, step by step. */
export function blobsOfStep(manifest: Manifest): BlobRef[] {
  const { supervised } = manifest;
  return [...(supervised ? [supervised.rendering.dataset] : []), ...referencesOf(manifest)];
}

/** A run names one in its configuration; of a script's own loop each step names its own. */
async function readReferences(store: Store, run: string): Promise<BlobRef[]> {
  const file = (await readRun(store, run))?.file;
  if (file?.loop === undefined) return referencesOf(file?.config ?? null);
  const commits = await Promise.all((await listSteps(store, run)).map((place) => readCommit(store, place)));
  return commits.flatMap((commit) => referencesOf(commit?.manifest ?? null));
}

/** References of all runs, and of schedules' future runs: the reason for each, by hash. */
export async function readAllReferences(store: Store): Promise<Map<string, string>> {
  const references = new Map<string, string>();
  for (const { name, config } of await readActiveSchedules(store))
    for (const { sha256 } of referencesOf(config))
      references.set(sha256, `runs of the schedule ${name} are compared with it`);
  for (const run of await listRuns(store))
    for (const { sha256 } of await readReferences(store, run))
      references.set(sha256, `the run ${run} is compared with it`);
  return references;
}
