/** Branches and changed settings of a run, and the commits on its line. */
import type { z } from 'zod';

import type { Branch, CostLedger, EvalResult, LocateInput, SettingChange } from '../../../core/contract/contract.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { hasWindow } from '../../../core/plan/window.ts';
import { branchOfStep, planLineage } from '../../../core/names/lineage.ts';
import { childNumbers } from '../children.ts';
import { BranchFileSchema, ChangesFileSchema, readStored, RunFileSchema } from '../file-schemas.ts';
import { encodeJson } from '../../bytes/json.ts';
import * as layout from '../../layout.ts';
import { weightsOf, type Commit } from './manifest.ts';
import { markPruned, readPruned, requireUnpruned } from './pruned.ts';
import { readCommit } from './run-reader.ts';
import type { Store } from '../../store.ts';

type Rollback = Omit<NonNullable<LocateInput['rollback']>, 'costs'> & { costs?: CostLedger };

/** `branches/<b>/branch.json`; `requestId` identifies the request, so that a repeated one finds its branch. */
export type BranchFile = z.output<typeof BranchFileSchema>;

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
export async function openBranch(store: Store, run: string, { requestId, step, costs }: Rollback): Promise<number> {
  for (;;) {
    const files = await readBranchFiles(store, run);
    const made = files.find((file) => file.requestId === requestId);
    if (made !== undefined) return made.branch;
    const newest = files.at(-1)?.branch ?? 0;
    // Pruned blobs that exist because another run has the same bytes belong to this run again.
    const place = await requireWeights(store, run, step);
    if ((await readPruned(store, place)) !== false) await markPruned(store, place, false);
    const fromBranch = branchOfStep(planLineage(files, newest), step);
    const origin = { fromBranch, fromStep: step, requestId, ...(costs && { costs }) };
    const file: BranchFile = { schema: 1, branch: newest + 1, ...origin };
    const { created } = await store.publish(layout.branchKey(run, file.branch), encodeJson(file));
    if (created) return file.branch;
  }
}

/** How many of the newest commits the next steps may sample from, or have sampled from. */
export async function readOldestSampler(store: Store, run: string): Promise<number> {
  const config = (await readStored(store, layout.runKey(run), RunFileSchema))?.config;
  if (config === undefined) return 0;
  return hasWindow(config) ? config.maxRewardStaleness : config.maxStaleness;
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

export async function readBranchFiles(store: Store, run: string): Promise<BranchFile[]> {
  const numbers = await childNumbers(store, layout.branchesPrefix(run));
  const files = numbers.map((branch) => readStored(store, layout.branchKey(run, branch), BranchFileSchema));
  return (await Promise.all(files)).filter((file) => file !== null);
}
