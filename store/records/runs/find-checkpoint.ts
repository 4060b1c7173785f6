/** Finds a checkpoint by a user's name for it, by its place, or as the current one of a run. */
import type { Branch, Checkpoint, RunState } from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { branchOfStep } from '../../../core/names/lineage.ts';
import { checkpointName, type CheckpointName, policyName } from '../../../core/names/policy-name.ts';
import { listSteps, rankByMetric, readCommitted } from './checkpoints.ts';
import { childNumbers } from '../children.ts';
import { stepsPrefix, type StepPlace } from '../../layout.ts';
import { readLineage } from './lineage.ts';
import { checkpointOf } from './manifest.ts';
import { findPromoted } from './promotions.ts';
import { readCommit, readState, requireRunFile } from './run-reader.ts';
import type { Store } from '../../store.ts';

/** Refused if there is none, with what to name instead. */
export async function findCheckpoint(store: Store, { run, branch, step }: CheckpointName): Promise<Checkpoint> {
  if (step === 'production') return findProduction(store, run, branch);
  await requireRunFile(store, run);
  if (step === 'best') return findBest(store, run, branch);
  if (step === 'latest') return findLatest(store, run, branch);
  const lineage = await readLineage(store, run);
  const place = { run, branch: branch ?? branchOfStep(lineage, step), step };
  const found = await readCheckpoint(store, place);
  if (found !== null) return found;
  const before =
    branch === null ? await findLastOfLine(store, place, lineage) : await findLast(store, run, branch, step);
  throw badConfig(describeUncommitted(place, before, lineage));
}

/** Its name in commands and for people. */
export async function nameCheckpoint(store: Store, checkpoint: StepPlace): Promise<string> {
  return checkpointName(checkpoint, await readLineage(store, checkpoint.run));
}

/** The same for many: the lineage of each run is read once. */
export async function nameCheckpoints(store: Store, checkpoints: readonly StepPlace[]): Promise<string[]> {
  const runs = [...new Set(checkpoints.map(({ run }) => run))];
  const lineages = new Map(await Promise.all(runs.map(async (run) => [run, await readLineage(store, run)] as const)));
  return checkpoints.map((checkpoint) => checkpointName(checkpoint, lineages.get(checkpoint.run)!));
}

/** It may be a checkpoint of another run. */
async function findProduction(store: Store, run: string, branch: number | null): Promise<Checkpoint> {
  if (branch !== null)
    throw badConfig(`production is of a run as a whole, got ${run}~${branch}@production; pass ${run}@production`);
  const promoted = (await findPromoted(store, run))?.checkpoint ?? null;
  const found = promoted && (await readCheckpoint(store, promoted));
  if (found !== null && found.manifestSha256 === promoted?.manifestSha256) return found;
  const because = promoted === null ? 'nothing was promoted' : `${policyName(promoted)} is gone`;
  throw badConfig(
    `${run}@production names no checkpoint (${because}); promote one: temper production promote ${run}@STEP`,
  );
}

/** Names the newest commit before the step: a step that trained nothing has its weights. */
export function describeUncommitted(place: StepPlace, before: StepPlace | null, lineage: readonly Branch[]): string {
  const latest = `${place.run}@latest`;
  const name = checkpointName(place, lineage);
  if (before === null) return `${name} is not committed; pass another step, or ${latest}`;
  return `${name} is not committed (the newest before it is ${checkpointName(before, lineage)}); pass that, or ${latest}`;
}

async function findLatest(store: Store, run: string, branch: number | null): Promise<Checkpoint> {
  const state = branch === null ? await readState(store, run) : null;
  const found =
    branch === null ? state && (await findCurrentCheckpoint(store, state)) : await findLast(store, run, branch);
  if (found !== null) return found;
  throw badConfig(`${nameBranch(run, branch)} has no committed step yet; wait for one, or name another run`);
}

/** Compares mean rewards of evaluations: of one branch, or of all that the run's curve consists of. */
async function findBest(store: Store, run: string, branch: number | null): Promise<Checkpoint> {
  const lineage = await readLineage(store, run);
  const places = (await listSteps(store, run)).filter(
    (place) => place.branch === (branch ?? branchOfStep(lineage, place.step)),
  );
  const best = rankByMetric(await readCommitted(store, places), 'reward')[0];
  if (best !== undefined) return checkpointOf(run, best.commit);
  const message = `no checkpoint of ${nameBranch(run, branch)} has been evaluated; pass ${run}@latest, or a step`;
  throw badConfig(message);
}

function nameBranch(run: string, branch: number | null): string {
  return branch === null ? run : `branch ${branch} of ${run}`;
}

/** With the hashes that its readers verify; null if the step is not committed. */
export async function readCheckpoint(store: Store, place: StepPlace): Promise<Checkpoint | null> {
  const commit = await readCommit(store, place);
  return commit && checkpointOf(place.run, commit);
}

/**
 * The commit in a run's state. Steps that trained nothing have none, and a new branch may still be at a commit of the
 * branch before it: hence by the adapter's hash.
 */
export async function findCurrentCheckpoint(store: Store, state: RunState): Promise<Checkpoint | null> {
  for (let branch = state.branch; branch >= 0; branch--) {
    // Newest first, the step in hand included.
    for (const step of (await childNumbers(store, stepsPrefix(state.run, branch))).toReversed()) {
      const checkpoint = step > state.step ? null : await readCheckpoint(store, { run: state.run, branch, step });
      if (checkpoint?.adapterSha256 === state.adapterSha256) return checkpoint;
    }
  }
  return null;
}

/** Searches branch 0, which has all steps of a script's own loop. */
export async function findNewestCheckpoint(
  store: Store,
  run: string,
  notAfterStep: number,
): Promise<Checkpoint | null> {
  return findLast(store, run, 0, notAfterStep);
}

/** The last one not after a place, along the line that the run follows. */
async function findLastOfLine(store: Store, { run, step }: StepPlace, lineage: readonly Branch[]) {
  let last = step;
  for (const { branch, fromStep } of lineage.toReversed()) {
    const found = await findLast(store, run, branch, last);
    if (found !== null) return found;
    last = Math.min(last, fromStep);
  }
  return findLast(store, run, 0, last);
}

async function findLast(
  store: Store,
  run: string,
  branch: number,
  notAfterStep = Infinity,
): Promise<Checkpoint | null> {
  for (const step of (await childNumbers(store, stepsPrefix(run, branch))).toReversed()) {
    const checkpoint = step > notAfterStep ? null : await readCheckpoint(store, { run, branch, step });
    if (checkpoint !== null) return checkpoint;
  }
  return null;
}
