/** Adapters that steps of a run charge a divergence from. Ended runs are verified against them, too. */
import type { BlobRef } from '../../core/contract.ts';
import { listSteps } from './checkpoints.ts';
import type { Commit } from './manifest.ts';
import { listRuns, readCommit, readRun } from './run-reader.ts';
import { readActiveSchedules } from './schedules.ts';
import type { Store } from '../store.ts';

/** A run names one in its configuration; of a script's own loop each step names its own. */
async function readReferences(store: Store, run: string): Promise<BlobRef[]> {
  const file = (await readRun(store, run))?.file;
  if (file?.loop === undefined) return [file?.config.train.klReference ?? []].flat();
  return referencesOf(await Promise.all((await listSteps(store, run)).map((place) => readCommit(store, place))));
}

/** References of all runs, and of schedules' future runs: the reason for each, by hash. */
export async function readAllReferences(store: Store): Promise<Map<string, string>> {
  const references = new Map<string, string>();
  for (const { name, config } of await readActiveSchedules(store)) {
    const { klReference } = config.train;
    if (klReference !== undefined)
      references.set(klReference.sha256, `runs of the schedule ${name} are compared with it`);
  }
  for (const run of await listRuns(store))
    for (const { sha256 } of await readReferences(store, run))
      references.set(sha256, `the run ${run} is compared with it`);
  return references;
}

export function referencesOf(commits: readonly (Commit | null)[]): BlobRef[] {
  const named = commits.flatMap((commit) => commit?.manifest.train?.klReference ?? []);
  return [...new Map(named.map((reference) => [reference.sha256, reference])).values()];
}
