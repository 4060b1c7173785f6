/**
 * Removes weights and optimizer states of steps that are neither kept by request nor needed: as a run goes, and by
 * command. Manifests, rollouts and verdicts stay for the life of the run. A step is marked before its first blob is
 * removed.
 */
import type { BlobRef, Branch, RunState } from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { branchOfStep } from '../../../core/names/lineage.ts';
import { checkpointName, policyName } from '../../../core/names/policy-name.ts';
import { listCheckpoints, metricOf, rankByMetric, sizeOf, type CheckpointEntry } from '../runs/checkpoints.ts';
import { readStored, RunFileSchema } from '../file-schemas.ts';
import { runKey, viewPrefix, type StepPlace } from '../../layout.ts';
import { readLineage, readOldestSampler } from '../runs/lineage.ts';
import { comparedAdapters, findTwins, hasBareBranch, liveBlobs, neededCheckpoints } from './live-blobs.ts';
import { weightsOf } from '../runs/manifest.ts';
import { blobsWithout, markPruned, type Pruned } from '../runs/pruned.ts';
import { readStoreIndex, type StoreIndex } from './store-index.ts';
import type { Store } from '../../store.ts';

export interface Retention {
  /** Number of newest checkpoints to keep, of each branch. */
  keepLast: number;
  /** Number of checkpoints that are best by a metric of their evaluation, of each branch. */
  keepBest: { metric: string; count: number }[];
  /** Every nth step; null: none for that reason. */
  keepEvery: number | null;
  /** Set as a run goes: what is later than this step is kept and does not count, whenever the pruning takes place. */
  asOf?: Pick<StepPlace, 'branch' | 'step'>;
}

/** Newest checkpoints of a branch that keep their optimizer states as a run goes. */
export const KEPT_WHOLE = 10;

/** Weights that a person names. */
export interface NamedSteps {
  /** Null: the line that the run follows. */
  branch: number | null;
  steps: readonly number[];
}

/** `to`: what it lacks afterwards. */
type PrunedCheckpoint = CheckpointEntry & { to: Exclude<Pruned, false> };

export interface PrunePlan {
  /** Checkpoints whose weights or optimizer states go. */
  pruned: PrunedCheckpoint[];
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
const KEEP_NONE: Retention = { keepLast: 0, keepBest: [], keepEvery: null };

export async function planPrune(store: Store, run: string, what: Retention | NamedSteps): Promise<PrunePlan> {
  const retention = 'steps' in what ? KEEP_NONE : what;
  const checkpoints = await listCheckpoints(store, run);
  if (retention.asOf === undefined)
    for (const { metric } of retention.keepBest) requireMetric(checkpoints, run, metric);
  const needed = NEEDED_LAST + (await readOldestSampler(store, run));
  const lineage = 'steps' in what ? await readLineage(store, run) : [];
  // Last: of a large store it takes its time, in which a branch may begin.
  const index = await readStoreIndex(store, checkpoints);
  const state = index.runs.find((each) => each.run === run)?.state ?? null;
  const reasons = reasonsToKeep(checkpoints, retention, { state, needed });
  keepUsed(index, run, checkpoints, reasons);
  if ('steps' in what) keepUnnamed(checkpoints, what, reasons, { run, lineage });
  const goal = (entry: CheckpointEntry): Pruned => {
    if (reasons.has(entry)) return false;
    return retention.asOf === undefined || !wasEvaluated(entry) || 'optimizer';
  };
  const live = liveBlobs(index, new Map(checkpoints.map((entry) => [policyName(entry), goal(entry)])));
  const unneeded = ({ commit, there }: CheckpointEntry, to: Pruned) => {
    const gone = new Set(blobsWithout(commit.manifest, to).map(({ sha256 }) => sha256));
    return there.filter(({ sha256 }) => gone.has(sha256) && !live.has(sha256));
  };
  const pruned = checkpoints.flatMap((entry): PrunedCheckpoint[] => {
    const to = goal(entry);
    if (to === false || entry.weights === 'missing') return [];
    // A process that was killed after a mark left blobs behind; those that others need don't count as work.
    const isNew = entry.marked === false || (entry.marked === 'optimizer' && to === true);
    return isNew || unneeded(entry, to).length > 0 ? [{ ...entry, to: entry.marked === true ? true : to }] : [];
  });
  const blobs = [
    ...new Map(pruned.flatMap((entry) => unneeded(entry, entry.to)).map((ref) => [ref.sha256, ref])).values(),
  ];
  const kept = checkpoints.filter((entry) => reasons.has(entry) && entry.weights !== 'pruned');
  return {
    pruned,
    kept: kept.map((checkpoint) => ({ checkpoint, because: reasons.get(checkpoint)! })),
    blobs,
    bytes: sizeOf(blobs),
  };
}

/**
 * Marks first, views next, blobs last: killed anywhere, it can be done again, and readers know what they miss. `check`
 * throws if it must not go on.
 */
export async function prune(
  store: Store,
  run: string,
  retention: Retention | NamedSteps,
  check: () => void = () => undefined,
): Promise<PrunePlan> {
  const plan = await planPrune(store, run, retention);
  for (const checkpoint of plan.pruned) {
    check();
    await markPruned(store, checkpoint, checkpoint.to);
    if (checkpoint.to === true) await store.removeFolder(viewPrefix(checkpoint));
  }
  for (const ref of plan.blobs) {
    check();
    await store.removeBlob(ref);
  }
  return plan;
}

/** What something in the store uses, or is about to. */
function keepUsed(index: StoreIndex, run: string, checkpoints: readonly CheckpointEntry[], reasons: Reasons): void {
  // A branch may begin after any step: its first manifest will tell.
  if (index.runs.some((each) => each.run === run && hasBareBranch(each)))
    keepAhead(checkpoints, 0, reasons, 'a branch was started and has no step yet');
  for (const { after } of findTwins(index, run))
    if (after !== null) keepAhead(checkpoints, after, reasons, 'another run is about to make the same weights');
  const [used, compared] = [neededCheckpoints(index), comparedAdapters(index)];
  for (const checkpoint of checkpoints) {
    const references = weightsOf(checkpoint.commit.manifest).map(({ sha256 }) => compared.get(sha256));
    const because = used.get(policyName(checkpoint)) ?? references.find((reason) => reason !== undefined);
    if (because !== undefined && !reasons.has(checkpoint)) reasons.set(checkpoint, because);
  }
}

/** By playing its agent, or on held-out examples. */
function wasEvaluated({ evaluation, commit }: CheckpointEntry): boolean {
  return evaluation !== null || commit.manifest.metrics['heldOutLoss'] !== undefined;
}

/** Steps between two prunings of a run in progress: each reads the whole store. */
export const PRUNED_EVERY = 10;

/**
 * After a step of a run that does not keep all: the newest checkpoints stay whole, and the best before them; of older ones the adapters stay
 * of those that were evaluated. Depends on the step alone, so that a run that was killed stores the same in the end.
 */
export async function pruneAfterStep(
  store: Store,
  { run, steps }: Pick<RunState, 'run' | 'steps'>,
  asOf: Pick<StepPlace, 'branch' | 'step'>,
  check: () => void,
): Promise<PrunePlan | null> {
  if (asOf.step % PRUNED_EVERY !== 0 && asOf.step !== steps) return null;
  const file = await readStored(store, runKey(run), RunFileSchema);
  if (file === null || file.config.keepAll) return null;
  const keepBest = [{ metric: 'reward', count: 1 }];
  return prune(store, run, { keepLast: KEPT_WHOLE, keepBest, keepEvery: null, asOf }, check);
}

function requireMetric(checkpoints: readonly CheckpointEntry[], run: string, metric: string): void {
  if (checkpoints.some((checkpoint) => metricOf(checkpoint, metric) !== null)) return;
  const evaluations = checkpoints.flatMap(({ evaluation }) => evaluation ?? []);
  const names = new Set(evaluations.flatMap(({ metrics }) => ['reward', ...Object.keys(metrics)]));
  const known = names.size === 0 ? 'none of its checkpoints has been evaluated' : `there are ${[...names].join(', ')}`;
  throw badConfig(
    `--keep-best must name a metric of the evaluations of ${run}, got ${metric} (${known}); nothing was pruned`,
  );
}

/** Removes the named checkpoints only. Refused if one of them must stay, or does not exist. */
function keepUnnamed(
  checkpoints: readonly CheckpointEntry[],
  { branch, steps }: NamedSteps,
  reasons: Reasons,
  { run, lineage }: { run: string; lineage: readonly Branch[] },
): void {
  const branchOf = (step: number) => branch ?? branchOfStep(lineage, step);
  const named = checkpoints.filter((entry) => entry.branch === branchOf(entry.step) && steps.includes(entry.step));
  const missing = steps.find((step) => named.every((entry) => entry.step !== step));
  if (missing !== undefined) {
    const name = checkpointName({ run, branch: branchOf(missing), step: missing }, lineage);
    throw badConfig(`${name} is not committed, so nothing was deleted; see temper checkpoints ${run}`);
  }
  const refused = named.find((entry) => reasons.has(entry));
  if (refused !== undefined) {
    const because = `${checkpointName(refused, lineage)} must keep its weights (${reasons.get(refused)})`;
    throw badConfig(`${because}, so nothing was deleted; leave it out of --step`);
  }
  for (const entry of checkpoints)
    if (!named.includes(entry)) reasons.set(entry, reasons.get(entry) ?? 'it was not named');
}

type Reasons = Map<CheckpointEntry, string>;

function reasonsToKeep(
  checkpoints: readonly CheckpointEntry[],
  retention: Retention,
  { state, needed }: { state: RunState | null; needed: number },
): Reasons {
  const reasons: Reasons = new Map();
  // Only the most important reason is reported.
  const keep = (entries: readonly CheckpointEntry[], because: string) => {
    for (const entry of entries) if (!reasons.has(entry)) reasons.set(entry, because);
  };
  const { keepLast, keepBest, keepEvery, asOf } = retention;
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
    keep(opponentsOf(checkpoints, ofBranch.at(-1)!), 'the league plays against it');
    const isLater = ({ step }: CheckpointEntry) => asOf?.branch === branch && step > asOf.step;
    keep(ofBranch.filter(isLater), 'it is newer');
    const upTo = ofBranch.filter((entry) => !isLater(entry));
    const last = lastOf(upTo, keepLast);
    keep(last, `one of the last ${keepLast}`);
    // As a run goes: the last ones may be evaluated at any moment.
    const rated = asOf === undefined ? ofBranch : upTo.slice(0, upTo.length - last.length);
    for (const { metric, count } of keepBest)
      keep(rankByMetric(rated, metric).slice(0, count), `one of the best ${count} by ${metric}`);
  }
  if (keepEvery !== null)
    keep(
      checkpoints.filter(({ step }) => step % keepEvery === 0),
      `every ${keepEvery}th`,
    );
  return reasons;
}

/** Checkpoints that the next steps' opponents are drawn from. */
function opponentsOf(checkpoints: readonly CheckpointEntry[], { commit }: CheckpointEntry): CheckpointEntry[] {
  const opponents = Object.values(commit.manifest.league ?? {}).flat();
  return checkpoints.filter((entry) => opponents.some(({ branch, step }) => isAt(entry, { branch, step })));
}

type Place = Pick<StepPlace, 'branch' | 'step'>;
const isAt = (entry: CheckpointEntry, { branch, step }: Place): boolean =>
  entry.branch === branch && entry.step === step;

function lastOf(ofBranch: readonly CheckpointEntry[], count: number): readonly CheckpointEntry[] {
  return count === 0 ? [] : ofBranch.slice(-count);
}

const parentOf = ({ commit }: CheckpointEntry): string | undefined => commit.manifest.parent?.manifestSha256;

function hasOwnParent(entry: CheckpointEntry, checkpoints: readonly CheckpointEntry[]): boolean {
  const parent = checkpoints.find(({ commit }) => commit.sha256 === parentOf(entry));
  return parent === undefined || parent.branch === entry.branch;
}

function keepAhead(checkpoints: readonly CheckpointEntry[], from: number, reasons: Reasons, because: string): void {
  for (const checkpoint of checkpoints) {
    if (checkpoint.step > from && !reasons.has(checkpoint)) reasons.set(checkpoint, because);
  }
}
