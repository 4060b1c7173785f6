/** Removes weights of a run, or the run; a dry run only says which. */
import { badConfig } from '../core/contract/failures.ts';
import { requireCheckpointName, requireWholeRun } from '../core/names/policy-name.ts';
import { deleteRun, planRunDeletion } from '../store/records/retention/delete-run.ts';
import { planPrune, prune, type Retention } from '../store/records/retention/prune.ts';
import type { Place } from './operation.ts';

interface StepName {
  readonly branch: number;
  readonly step: number;
}

export interface Removal {
  readonly dryRun: boolean;
  readonly pruned: readonly StepName[];
  readonly kept: readonly (StepName & { readonly because: string })[];
  readonly removedBlobs: readonly string[];
  readonly removedBytes: number;
}

export interface RunRemoval {
  readonly dryRun: boolean;
  readonly run: string;
  /** How many. */
  readonly objects: number;
  readonly removedBlobs: readonly string[];
  readonly removedBytes: number;
  readonly leftBecause: string | null;
}

interface Pruning {
  readonly run: string;
  readonly keepLast: number | null;
  /** `METRIC:N` */
  readonly keepBest: readonly string[];
  readonly keepEvery: number | null;
  readonly dryRun: boolean;
}

export function pruneRun(place: Place, pruning: Pruning): Promise<Removal> {
  const { run, keepLast, keepBest, keepEvery, dryRun } = pruning;
  requireWholeRun('prune', run);
  // There is no default, because this removes data.
  if (keepLast === null && keepEvery === null && keepBest.length === 0)
    throw badConfig('prune needs to know what to keep; pass --keep-last N, --keep-best METRIC:N or --keep-every N');
  return removeWeights(place, run, dryRun, { keepLast: keepLast ?? 0, keepEvery, keepBest: keepBest.map(parseBest) });
}

function parseBest(text: string): Retention['keepBest'][number] {
  const at = text.lastIndexOf(':');
  return { metric: text.slice(0, at), count: Number(text.slice(at + 1)) };
}

interface Deleting {
  /** `RUN~BRANCH` for steps of a branch. */
  readonly run: string;
  readonly step: readonly number[] | null;
  readonly all: boolean;
  readonly withProduction: boolean;
  readonly dryRun: boolean;
}

export async function deleteOf(place: Place, deleting: Deleting): Promise<Removal | RunRemoval> {
  const { run: named, step: steps, all, withProduction, dryRun } = deleting;
  if (named.includes('@'))
    throw badConfig(`delete takes steps by flag, got ${JSON.stringify(named)}; pass --step N, or --all`);
  const { run, branch } = requireCheckpointName(named);
  if (steps !== null) return removeWeights(place, run, dryRun, { branch, steps });
  if (!all) throw badConfig('delete needs to know what to remove; pass --step N,M-K, or --all for the whole run');
  requireWholeRun('delete --all', named);
  const plan = await (dryRun ? planRunDeletion : deleteRun)(await place.store(), run, withProduction);
  const { objects, blobs, bytes, leftBecause } = plan;
  const removedBlobs = blobs.map(({ key }) => key.slice(key.lastIndexOf('/') + 1));
  return { dryRun, run, objects: objects.length, removedBlobs, removedBytes: bytes, leftBecause };
}

async function removeWeights(
  place: Place,
  run: string,
  dryRun: boolean,
  chosen: Parameters<typeof prune>[2],
): Promise<Removal> {
  const { pruned, kept, blobs, bytes } = await (dryRun ? planPrune : prune)(await place.store(), run, chosen);
  const shown = 'steps' in chosen ? [] : kept;
  return {
    dryRun,
    pruned: pruned.map(({ branch, step }) => ({ branch, step })),
    kept: shown.map(({ checkpoint: { branch, step }, because }) => ({ branch, step, because })),
    removedBlobs: blobs.map(({ sha256 }) => sha256),
    removedBytes: bytes,
  };
}
