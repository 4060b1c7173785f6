/** The committed steps of a run, as a list to choose from. */
import pLimit from 'p-limit';
import type { BlobRef, EvalResult } from '../../../core/contract/contract.ts';
import { childNumbers } from '../children.ts';
import { branchesPrefix, stepsPrefix, type StepPlace } from '../../layout.ts';
import { weightsOf, type Commit, type NamedWeights } from './manifest.ts';
import { blobsWith, readPruned, type Pruned } from './pruned.ts';
import { readCommit, readEval, requireRunFile } from './run-reader.ts';
import type { Store } from '../../store.ts';

/** Steps that are read at the same time. */
const AT_ONCE = 32;

interface CommittedStep extends StepPlace {
  commit: Commit;
  /** Its own, or that of a step after it which trained nothing. */
  evaluation: EvalResult | null;
}

/** `adapter`: the optimizer state was pruned. Pruned blobs may be there: another checkpoint or run has the same bytes. */
type WeightsState = 'kept' | 'adapter' | 'pruned' | 'missing';

interface Weights {
  /** Size of the adapters and optimizer states that are there. */
  bytes: number;
  weights: WeightsState;
  there: readonly BlobRef[];
  /** The mark alone. */
  marked: Pruned;
}

export type CheckpointEntry = CommittedStep & Weights;

export async function listCheckpoints(store: Store, run: string): Promise<CheckpointEntry[]> {
  await requireRunFile(store, run);
  const places = await listSteps(store, run);
  const limit = pLimit(AT_ONCE);
  const describe = (each: CommittedStep) => describeWeights(store, each, each.commit.manifest);
  const entries: CheckpointEntry[] = [];
  for (const branch of new Set(places.map((place) => place.branch))) {
    const committed = await readCommitted(
      store,
      places.filter((place) => place.branch === branch),
    );
    const weights = await Promise.all(committed.map((each) => limit(describe, each)));
    entries.push(...committed.map((each, index) => ({ ...each, ...weights[index]! })));
  }
  return entries;
}

/** Those of the places, in their order, that have a commit. A step without one was evaluated with the weights before it. */
export async function readCommitted(store: Store, places: readonly StepPlace[]): Promise<CommittedStep[]> {
  const limit = pLimit(AT_ONCE);
  const read = async (place: StepPlace) => {
    const [commit, evaluation] = await Promise.all([readCommit(store, place), readEval(store, place)]);
    return { place, commit, evaluation };
  };
  const steps = await Promise.all(places.map((each) => limit(read, each)));
  const committed: CommittedStep[] = [];
  for (const { place, commit, evaluation } of steps) {
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

export async function describeWeights(store: Store, place: StepPlace, manifest: NamedWeights): Promise<Weights> {
  const blobs = weightsOf(manifest);
  const [pruned, ...lengths] = await Promise.all([
    readPruned(store, place),
    ...blobs.map((ref) => store.blobBytes(ref)),
  ]);
  const there = blobs.filter((_, index) => lengths[index] !== null);
  const hashes = new Set(there.map(({ sha256 }) => sha256));
  const isWhole = blobsWith(manifest, pruned).every(({ sha256 }) => hashes.has(sha256));
  return { there, bytes: sizeOf(there), weights: isWhole ? NAMES.get(pruned)! : 'missing', marked: pruned };
}

const NAMES = new Map<Pruned, WeightsState>([
  [false, 'kept'],
  ['optimizer', 'adapter'],
  [true, 'pruned'],
]);

export const sizeOf = (objects: readonly { bytes: number }[]): number =>
  objects.reduce((sum, { bytes }) => sum + bytes, 0);

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
