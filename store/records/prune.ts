/**
 * Retention: weights and optimizer states of steps that nobody asked to keep and nothing needs any more. Manifests, rollouts
 * and verdicts stay for the life of the run. A step is marked before its first blob goes.
 */
import type { BlobRef, RunState } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { listCheckpoints, listSteps, metricOf, rankByMetric, type CheckpointEntry } from './checkpoints.ts';
import { childNumbers } from './children.ts';
import { branchesPrefix, viewPrefix } from '../layout.ts';
import { readMaxStaleness } from './lineage.ts';
import { isMarkedPruned, markPruned } from './pruned.ts';
import { readReferences } from './references.ts';
import { isEnded, listRuns, readCommit, readState } from './run-reader.ts';
import type { Store } from '../store.ts';

export interface Retention {
  /** The newest so many of each branch. */
  keepLast: number;
  /** The so many best by a metric of their evaluation, of each branch. */
  keepBest: { metric: string; count: number }[];
  /** Every nth step; null: none for that reason. */
  keepEvery: number | null;
}

export interface PrunePlan {
  /** Checkpoints whose weights go. */
  pruned: CheckpointEntry[];
  kept: { checkpoint: CheckpointEntry; because: string }[];
  /** Blobs that no manifest needs then; what another checkpoint or run shares is not among them. */
  blobs: BlobRef[];
  bytes: number;
}

/**
 * The step in hand is made from the newest checkpoint, and a retry of the step before it from the one before that. Where
 * steps overlap, both were sampled from older ones.
 */
const NEEDED_LAST = 2;

export async function planPrune(store: Store, run: string, retention: Retention): Promise<PrunePlan> {
  const checkpoints = await listCheckpoints(store, run);
  for (const { metric } of retention.keepBest) requireMetric(checkpoints, run, metric);
  const reasons = reasonsToKeep(checkpoints, retention, {
    state: await readState(store, run),
    needed: NEEDED_LAST + (await readMaxStaleness(store, run)),
  });
  // It may begin after any step: its first manifest will tell.
  if (await hasBareBranch(store, run, checkpoints))
    keepAhead(checkpoints, 0, reasons, 'a branch was started and has no step yet');
  for (const twin of await findTwins(store, run, checkpoints))
    keepAhead(checkpoints, twin, reasons, 'another run is about to make the same weights');
  for (const [reference, other] of await findReferences(store))
    for (const checkpoint of checkpoints.filter(({ commit }) => commit.manifest.adapter.sha256 === reference))
      if (!reasons.has(checkpoint)) reasons.set(checkpoint, `the run ${other} is compared with it`);
  const wanted = checkpoints.filter((checkpoint) => reasons.has(checkpoint));
  const kept = wanted.filter(({ weights }) => weights !== 'pruned');
  const needed = await neededBlobs(store, run, wanted);
  const unneeded = (checkpoint: CheckpointEntry) => weightsOf(checkpoint).filter(({ sha256 }) => !needed.has(sha256));
  // Who was killed after a mark left blobs behind; those of a marked one that others need are no work.
  const hasWork = (entry: CheckpointEntry) => entry.weights === 'kept' || unneeded(entry).length > 0;
  const pruned = checkpoints.filter((entry) => !reasons.has(entry) && entry.areThere && hasWork(entry));
  const blobs = [...new Map(pruned.flatMap(unneeded).map((ref) => [ref.sha256, ref])).values()];
  return {
    pruned,
    kept: kept.map((checkpoint) => ({ checkpoint, because: reasons.get(checkpoint)! })),
    blobs,
    bytes: blobs.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

/** Marks first, views next, blobs last: killed anywhere, it can be done again, and readers know what they miss. */
export async function prune(store: Store, { pruned, blobs }: PrunePlan): Promise<void> {
  for (const checkpoint of pruned) {
    await markPruned(store, checkpoint);
    await store.removeFolder(viewPrefix(checkpoint));
  }
  for (const ref of blobs) await store.removeBlob(ref);
}

function requireMetric(checkpoints: readonly CheckpointEntry[], run: string, metric: string): void {
  if (checkpoints.some((checkpoint) => metricOf(checkpoint, metric) !== null)) return;
  const evaluations = checkpoints.flatMap(({ evaluation }) => evaluation ?? []);
  const names = new Set(evaluations.flatMap(({ metrics }) => ['reward', ...Object.keys(metrics)]));
  const known = names.size === 0 ? 'none of its checkpoints has been evaluated' : `there are ${[...names].join(', ')}`;
  throw new TemperError(
    'BadConfig',
    `--keep-best must name a metric of the evaluations of ${run}, got ${metric} (${known}); nothing was pruned`,
  );
}

type Reasons = Map<CheckpointEntry, string>;

function reasonsToKeep(
  checkpoints: readonly CheckpointEntry[],
  retention: Retention,
  { state, needed }: { state: RunState | null; needed: number },
): Reasons {
  const reasons: Reasons = new Map();
  // The reason that matters most is the one that is told.
  const keep = (entries: readonly CheckpointEntry[], because: string) => {
    for (const entry of entries) if (!reasons.has(entry)) reasons.set(entry, because);
  };
  const { keepLast, keepBest, keepEvery } = retention;
  keep(
    checkpoints.filter(({ step }) => step === 0),
    'the run starts from it',
  );
  keep(
    checkpoints.filter(({ step }) => step === state?.step),
    'it is the current step of the run',
  );
  const branchPoints = new Set(checkpoints.filter((entry) => !hasOwnParent(entry, checkpoints)).map(parentOf));
  keep(
    checkpoints.filter(({ commit }) => branchPoints.has(commit.sha256)),
    'a branch starts from it',
  );
  for (const branch of new Set(checkpoints.map((checkpoint) => checkpoint.branch))) {
    const ofBranch = checkpoints.filter((checkpoint) => checkpoint.branch === branch);
    keep(ofBranch.slice(-needed), 'a step in progress may need it');
    keep(lastOf(ofBranch, keepLast), `one of the last ${keepLast}`);
    for (const { metric, count } of keepBest)
      keep(rankByMetric(ofBranch, metric).slice(0, count), `one of the best ${count} by ${metric}`);
  }
  if (keepEvery !== null)
    keep(
      checkpoints.filter(({ step }) => step % keepEvery === 0),
      `every ${keepEvery}th`,
    );
  return reasons;
}

function lastOf(ofBranch: readonly CheckpointEntry[], count: number): readonly CheckpointEntry[] {
  return count === 0 ? [] : ofBranch.slice(-count);
}

const parentOf = ({ commit }: CheckpointEntry): string | undefined => commit.manifest.parent?.manifestSha256;

function hasOwnParent(entry: CheckpointEntry, checkpoints: readonly CheckpointEntry[]): boolean {
  const parent = checkpoints.find(({ commit }) => commit.sha256 === parentOf(entry));
  return parent === undefined || parent.branch === entry.branch;
}

const weightsOf = ({ commit }: CheckpointEntry): BlobRef[] => [commit.manifest.adapter, commit.manifest.optimizer];

/** What the kept checkpoints of this run and all those of other runs refer to. */
async function neededBlobs(store: Store, run: string, kept: readonly CheckpointEntry[]): Promise<Set<string>> {
  const needed = new Set(kept.flatMap(weightsOf).map(({ sha256 }) => sha256));
  for (const other of (await listRuns(store)).filter((name) => name !== run)) {
    for (const place of await listSteps(store, other)) {
      const commit = (await isMarkedPruned(store, place)) ? null : await readCommit(store, place);
      for (const { sha256 } of commit ? [commit.manifest.adapter, commit.manifest.optimizer] : []) needed.add(sha256);
    }
  }
  return needed;
}

/**
 * A run under way that began with the same bytes makes this run's next ones, too: it finds a blob in its place and commits a
 * manifest that names it. What lies ahead of it is not removed under its hands.
 */
async function findTwins(store: Store, run: string, checkpoints: readonly CheckpointEntry[]): Promise<number[]> {
  const known = new Set(checkpoints.map(({ commit }) => commit.manifest.adapter.sha256));
  const steps: number[] = [];
  for (const other of (await listRuns(store)).filter((name) => name !== run)) {
    if (!(await isUnderWay(store, other))) continue;
    const commits = await Promise.all((await listSteps(store, other)).map((place) => readCommit(store, place)));
    const shared = commits.filter((commit) => commit !== null && known.has(commit.manifest.adapter.sha256));
    if (shared.length > 0) steps.push(Math.max(...shared.map((commit) => commit?.manifest.step ?? 0)));
  }
  return steps;
}

/** Adapters that steps charge a divergence from, with such a run; a script may name an earlier step of its own. */
async function findReferences(store: Store): Promise<Map<string, string>> {
  const references = new Map<string, string>();
  for (const run of await listRuns(store))
    for (const { sha256 } of await readReferences(store, run)) references.set(sha256, run);
  return references;
}

async function isUnderWay(store: Store, run: string): Promise<boolean> {
  const state = await readState(store, run);
  return state === null || !isEnded(state);
}

function keepAhead(checkpoints: readonly CheckpointEntry[], from: number, reasons: Reasons, because: string): void {
  for (const checkpoint of checkpoints) {
    if (checkpoint.step > from && !reasons.has(checkpoint)) reasons.set(checkpoint, because);
  }
}

async function hasBareBranch(store: Store, run: string, checkpoints: readonly CheckpointEntry[]): Promise<boolean> {
  const branches = await childNumbers(store, branchesPrefix(run));
  return branches.some((branch) => checkpoints.every((checkpoint) => checkpoint.branch !== branch));
}
