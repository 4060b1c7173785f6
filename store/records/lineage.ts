/**
 * Position of a run according to its store: branches and changed settings are published here, and the position after a
 * step is derived from manifests and groups. Files for display are not read.
 */
import type { z } from 'zod';

import type { Branch, EvalResult, Located, LocateInput, SettingChange } from '../../core/contract.ts';
import { isUnreadable, TemperError } from '../../core/failures.ts';
import { hasWindow } from '../../core/plan-window.ts';
import { branchOfStep, planLineage } from '../../core/lineage.ts';
import { KEPT_EVALS } from '../../core/run-summary.ts';
import { childNumbers } from './children.ts';
import { BranchFileSchema, ChangesFileSchema, readStored, RunFileSchema } from './file-schemas.ts';
import { encodeJson } from '../bytes/json.ts';
import { listGroups } from './group-files.ts';
import * as layout from '../layout.ts';
import { findLeague } from './league.ts';
import { findOpenGroups } from './open-groups.ts';
import { checkpointOf, weightsOf, type Commit } from './manifest.ts';
import { markPruned, readPruned, requireUnpruned } from './pruned.ts';
import { readCommit, readEval, readState } from './run-reader.ts';
import { readStepVerdict, trainsNothing } from './step-verdict.ts';
import { readRunSpending } from './verdicts.ts';
import type { Store } from '../store.ts';

type Rollback = NonNullable<LocateInput['rollback']>;

/** `branches/<b>/branch.json`; `requestId` identifies the request, so that a repeated one finds its branch. */
type BranchFile = z.output<typeof BranchFileSchema>;

/** All branches but 0, in order of their numbers. */
export async function readBranches(store: Store, run: string): Promise<Branch[]> {
  return (await readBranchFiles(store, run)).map(({ branch, fromBranch, fromStep }) => ({
    branch,
    fromBranch,
    fromStep,
  }));
}

/** The way to the newest branch: the line that the run follows. */
export async function readLineage(store: Store, run: string): Promise<Branch[]> {
  const branches = await readBranches(store, run);
  return planLineage(branches, branches.at(-1)?.branch ?? 0);
}

/** Makes the branch that takes over after a step of the newest one, or finds the one that this request made before. */
export async function openBranch(store: Store, run: string, { requestId, step }: Rollback): Promise<number> {
  for (;;) {
    const files = await readBranchFiles(store, run);
    const made = files.find((file) => file.requestId === requestId);
    if (made !== undefined) return made.branch;
    const newest = files.at(-1)?.branch ?? 0;
    // Pruned blobs that exist because another run has the same bytes belong to this run again.
    const place = await requireWeights(store, run, step);
    if ((await readPruned(store, place)) !== false) await markPruned(store, place, false);
    const fromBranch = branchOfStep(planLineage(files, newest), step);
    const file: BranchFile = { schema: 1, branch: newest + 1, fromBranch, fromStep: step, requestId };
    const { created } = await store.publish(layout.branchKey(run, file.branch), encodeJson(file));
    if (created) return file.branch;
  }
}

/** The last step of the newest branch that is finished: its commit says so, that nothing of it is trained, its evaluation, or that the next one was begun. */
export async function findLastStep(store: Store, run: string): Promise<number> {
  const newest = (await readBranches(store, run)).at(-1) ?? { branch: 0, fromStep: 0 };
  const { branch, fromStep } = newest;
  const begun = (await readAllChanges(store, run)).changes.filter((change) => change.branch === branch);
  const last = Math.max(0, ...(await childNumbers(store, layout.stepsPrefix(run, branch))));
  // These steps may have been played, and even decided, before the first of them was trained.
  const inProgress = Array.from({ length: (await readMaxStaleness(store, run)) + 1 }, (_, ahead) => last - ahead);
  const ended = await Promise.all(inProgress.map((step) => hasEnded(store, { run, branch, step })));
  const unfinished = inProgress.filter((step, index) => step > fromStep && !ended[index]);
  const finished = Math.min(last, ...unfinished.map((step) => step - 1));
  return Math.max(fromStep, finished, ...begun.map(({ step }) => step - 1));
}

/** Steps that an overlapping run plays ahead of training. */
async function readMaxStaleness(store: Store, run: string): Promise<number> {
  const file = await readStored(store, layout.runKey(run), RunFileSchema);
  return file?.config.maxStaleness ?? 0;
}

/** How many of the newest commits the next steps may sample from, or have sampled from. */
export async function readOldestSampler(store: Store, run: string): Promise<number> {
  const config = (await readStored(store, layout.runKey(run), RunFileSchema))?.config;
  if (config === undefined) return 0;
  return hasWindow(config) ? config.maxRewardStaleness : config.maxStaleness;
}

/** Position from which a run continues: the start of a branch; null: after the last finished step of the newest one. */
export async function findPosition(store: Store, run: string, made: number | null): Promise<Located> {
  const branches = await readBranches(store, run);
  const branch = made ?? branches.at(-1)?.branch ?? 0;
  const lineage = planLineage(branches, branch);
  const step = made === null ? await findLastStep(store, run) : (lineage.at(-1)?.fromStep ?? 0);
  const commit = await findCommit(store, run, lineage, step);
  const checkpoint = checkpointOf(run, commit);
  const file = await readStored(store, layout.runKey(run), RunFileSchema);
  const changed = await readAllChanges(store, run);
  const { changes } = changed;
  return {
    branch,
    lineage,
    step,
    checkpoint,
    ...(file === null ? {} : await findLeague(store, run, file.config, commit)),
    ...(made === null ? await findPolicies(store, run, lineage, step) : {}),
    open: file === null ? [] : await findOpenGroups(store, run, { config: file.config, changes, lineage, step }),
    dealt: await countGroups(store, run, lineage, step),
    emptySteps: step - checkpoint.step,
    evals: await readEvals(store, run, lineage, step),
    ...changed,
    judging: await readRunSpending(store, run, { branch, step }),
    ...(made === null ? await findCosts(store, run) : {}),
  };
}

/** From the run's state, which is only for display: without it, costs are counted from here on. */
async function findCosts(store: Store, run: string): Promise<Pick<Located, 'costs'>> {
  const state = await readState(store, run).catch((error: unknown) => {
    if (isUnreadable(error)) return null;
    throw error;
  });
  return state?.costs === undefined ? {} : { costs: state.costs };
}

/** Policies for the next steps: the checkpoints after the last steps, none of them from before the branch began. */
async function findPolicies(
  store: Store,
  run: string,
  lineage: readonly Branch[],
  step: number,
): Promise<Pick<Located, 'policies'>> {
  const maxStaleness = await readMaxStaleness(store, run);
  if (maxStaleness === 0) return {};
  const first = lineage.at(-1)?.fromStep ?? 0;
  const steps = Array.from({ length: maxStaleness + 1 }, (_, index) => Math.max(first, step - maxStaleness + index));
  const commits = await Promise.all(steps.map((after) => findCommit(store, run, lineage, after)));
  return { policies: commits.map((commit) => checkpointOf(run, commit)) };
}

/** Every setting that was ever changed, in order, and how often any were. */
export async function readAllChanges(
  store: Store,
  run: string,
): Promise<{ changes: SettingChange[]; amendments: number }> {
  const numbers = await childNumbers(store, layout.changesPrefix(run));
  const files = await Promise.all(
    numbers.map((number) => readStored(store, layout.changesKey(run, number), ChangesFileSchema)),
  );
  return { changes: files.flatMap((file) => file?.changes ?? []), amendments: Math.max(0, ...numbers) };
}

/** The commit of a step, or of the last one before it that had something to train. */
async function lastCommit(
  store: Store,
  run: string,
  lineage: readonly Branch[],
  after: number,
): Promise<Commit | null> {
  for (let step = after; step >= 0; step--) {
    const commit = await readCommit(store, { run, branch: branchOfStep(lineage, step), step });
    if (commit !== null) return commit;
  }
  return null;
}

const placeOf = (run: string, { manifest: { branch, step } }: Commit): layout.StepPlace => ({ run, branch, step });

async function findCommit(store: Store, run: string, lineage: readonly Branch[], after: number): Promise<Commit> {
  const commit = await lastCommit(store, run, lineage, after);
  if (commit !== null) return commit;
  throw new TemperError('StoreCorrupt', `the run ${run} has no commit up to step ${after}; restore it from a copy`);
}

/** Refused if a rollback could not train on: pruned weights are gone. A step that is not committed yet is left to the run. */
export async function requireUnprunedStep(store: Store, run: string, step: number): Promise<void> {
  const commit = await lastCommit(store, run, await readLineage(store, run), step);
  if (commit !== null) await requireUnpruned(store, placeOf(run, commit), commit);
}

/** A run must not go back to what cannot be trained on: weights may have been removed, or broken. Returns whose they are. */
export async function requireWeights(store: Store, run: string, step: number): Promise<layout.StepPlace> {
  const commit = await findCommit(store, run, await readLineage(store, run), step);
  const { manifest } = commit;
  const place = placeOf(run, commit);
  await requireUnpruned(store, place, commit);
  for (const ref of [...weightsOf(manifest), manifest.adapterConfig]) await store.getBlob(ref);
  return place;
}

/** Every played group has one file, replaced ones included, so the files count the scenarios used. */
async function countGroups(store: Store, run: string, lineage: readonly Branch[], last: number): Promise<number> {
  const groups = stepsTo(last).map((step) => listGroups(store, { run, branch: branchOfStep(lineage, step), step }));
  return (await Promise.all(groups)).flat().length;
}

async function readEvals(store: Store, run: string, lineage: readonly Branch[], last: number): Promise<EvalResult[]> {
  const found = await Promise.all(
    [0, ...stepsTo(last)].map((step) => readEval(store, { run, branch: branchOfStep(lineage, step), step })),
  );
  const [first, ...others] = found.filter((result) => result !== null).map(onTheWire);
  return first === undefined ? [] : [first, ...others.slice(1 - KEPT_EVALS)];
}

/** The file says more than the wire takes. */
export function onTheWire(evaluation: EvalResult): EvalResult {
  const { step, attempts, scenarios, failed, reward, metrics, rolloutsSha256 } = evaluation;
  const { sameAnswerShare, lostClasses } = evaluation;
  return {
    step,
    attempts,
    ...(scenarios !== undefined && { scenarios }),
    failed,
    reward,
    metrics,
    rolloutsSha256,
    ...(sameAnswerShare !== undefined && { sameAnswerShare }),
    ...(lostClasses !== undefined && { lostClasses }),
  };
}

async function hasEnded(store: Store, place: layout.StepPlace): Promise<boolean> {
  const verdict = await readStepVerdict(store, place);
  if (verdict !== null && trainsNothing(verdict)) return true;
  const keys = [layout.manifestKey(place), layout.evalKey(place)];
  return (await Promise.all(keys.map((key) => store.read(key)))).some((bytes) => bytes !== null);
}

async function readBranchFiles(store: Store, run: string): Promise<BranchFile[]> {
  const numbers = await childNumbers(store, layout.branchesPrefix(run));
  const files = numbers.map((branch) => readStored(store, layout.branchKey(run, branch), BranchFileSchema));
  return (await Promise.all(files)).filter((file) => file !== null);
}

function stepsTo(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}
