/** The committed steps of a run, as a list to choose from. */
import type { EvalResult } from '../../core/contract.ts';
import { childNumbers } from './children.ts';
import { branchesPrefix, stepsPrefix, type StepPlace } from '../layout.ts';
import { weightsOf, type Commit } from './manifest.ts';
import { isMarkedPruned } from './pruned.ts';
import { readCommit, readEval, requireRun } from './run-reader.ts';
import type { Store } from '../store.ts';

interface CommittedStep extends StepPlace {
  commit: Commit;
  /** Its own, or that of a step after it which trained nothing. */
  evaluation: EvalResult | null;
}

interface Weights {
  /** Size of adapters and optimizer states. */
  bytes: number;
  /** Pruned ones may be there: another checkpoint or run has the same bytes. */
  weights: 'kept' | 'pruned' | 'missing';
  areThere: boolean;
}

export type CheckpointEntry = CommittedStep & Weights;

export async function listCheckpoints(store: Store, run: string): Promise<CheckpointEntry[]> {
  await requireRun(store, run);
  const places = await listSteps(store, run);
  const entries: CheckpointEntry[] = [];
  for (const branch of new Set(places.map((place) => place.branch))) {
    const committed = await readCommitted(
      store,
      places.filter((place) => place.branch === branch),
    );
    for (const each of committed) entries.push({ ...each, ...(await describeWeights(store, each)) });
  }
  return entries;
}

/** Those of the places, in their order, that have a commit. A step without one was evaluated with the weights before it. */
export async function readCommitted(store: Store, places: readonly StepPlace[]): Promise<CommittedStep[]> {
  const committed: CommittedStep[] = [];
  for (const place of places) {
    const commit = await readCommit(store, place);
    const evaluation = await readEval(store, place);
    const before = committed.at(-1);
    if (commit !== null) committed.push({ ...place, commit, evaluation });
    else if (before !== undefined) before.evaluation ??= evaluation;
  }
  return committed;
}

export async function listSteps(store: Store, run: string): Promise<StepPlace[]> {
  const places: StepPlace[] = [];
  for (const branch of await childNumbers(store, branchesPrefix(run))) {
    for (const step of await childNumbers(store, stepsPrefix(run, branch))) places.push({ run, branch, step });
  }
  return places;
}

async function describeWeights(store: Store, { commit, ...place }: CommittedStep): Promise<Weights> {
  const blobs = weightsOf(commit.manifest);
  const lengths = await Promise.all(blobs.map((ref) => store.blobBytes(ref)));
  const areThere = lengths.every((length) => length !== null);
  const weights = (await isMarkedPruned(store, place)) ? 'pruned' : areThere ? 'kept' : 'missing';
  const bytes = blobs.reduce((sum, ref) => sum + ref.bytes, 0);
  return { bytes, weights, areThere };
}

interface Evaluated {
  step: number;
  evaluation: EvalResult | null;
}

/** Those that were evaluated by a metric, best first: the highest, of equals the later one. */
export function rankByMetric<Entry extends Evaluated>(entries: readonly Entry[], metric: string): Entry[] {
  const rated = entries.flatMap((entry) => {
    const value = metricOf(entry, metric);
    return value === null ? [] : [{ entry, value }];
  });
  return rated.toSorted((a, b) => b.value - a.value || b.entry.step - a.entry.step).map(({ entry }) => entry);
}

export function metricOf({ evaluation }: Evaluated, metric: string): number | null {
  return metric === 'reward' ? (evaluation?.reward ?? null) : (evaluation?.metrics[metric] ?? null);
}
