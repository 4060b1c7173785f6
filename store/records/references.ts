/** Adapters that steps of a run charge a divergence from. Ended runs are verified against them, too. */
import type { BlobRef } from '../../core/contract.ts';
import { listSteps } from './checkpoints.ts';
import type { Commit } from './manifest.ts';
import { readCommit, readRun } from './run-reader.ts';
import type { Store } from '../store.ts';

/** A run names one in its configuration; of a script's own loop each step names its own. */
export async function readReferences(store: Store, run: string): Promise<BlobRef[]> {
  const file = (await readRun(store, run))?.file;
  if (file?.loop === undefined) return [file?.config.train.klReference ?? []].flat();
  return referencesOf(await Promise.all((await listSteps(store, run)).map((place) => readCommit(store, place))));
}

export function referencesOf(commits: readonly (Commit | null)[]): BlobRef[] {
  const named = commits.flatMap((commit) => commit?.manifest.train?.klReference ?? []);
  return [...new Map(named.map((reference) => [reference.sha256, reference])).values()];
}
