/**
 * A run as a whole: refused while it is in progress, or something uses it or is about to. Blobs that anything else in the
 * store names stay. Its name is marked first, `run.json` goes next, its folder last: killed anywhere, it is no run any
 * more, and deleting it again does the rest.
 */
import { badConfig, type TemperError } from '../../../core/contract/failures.ts';
import { parsePolicyName, policyName } from '../../../core/names/policy-name.ts';
import { BLOBS_PREFIX, productionPrefix, runKey, runPrefix } from '../../layout.ts';
import type { Store, StoredObject } from '../../store.ts';
import { sizeOf } from '../runs/checkpoints.ts';
import { forgetDeletion, isBeingDeleted, markDeleted } from '../runs/deletions.ts';
import { blobHash, describeRuns, sweep } from './garbage.ts';
import { findTwins, liveBlobs, neededCheckpoints } from './live-blobs.ts';
import { requireRunFile } from '../runs/run-reader.ts';
import { readStoreIndex, type StoreIndex } from './store-index.ts';

export interface RunDeletion {
  /** In its folder, and of its production. */
  objects: StoredObject[];
  /** That nothing else names. */
  blobs: StoredObject[];
  /** Why blobs are left to `temper gc`; null if none are. */
  leftBecause: string | null;
  bytes: number;
}

/** `withProduction`: its recordings, feedback and promotions may go, too. */
export async function planRunDeletion(store: Store, run: string, withProduction = false): Promise<RunDeletion> {
  return plan(store, run, (await isBeingDeleted(store, run)) ? null : { withProduction });
}

/** Plans again once the name is marked: another process may have continued the run before, and after that none does. */
export async function deleteRun(store: Store, run: string, withProduction = false): Promise<RunDeletion> {
  const rules = (await isBeingDeleted(store, run)) ? null : { withProduction };
  if (rules !== null) {
    await plan(store, run, rules);
    await markDeleted(store, run);
  }
  const { objects, ...planned } = await plan(store, run, rules).catch(async (error: unknown) => {
    if (rules !== null) await forgetDeletion(store, run);
    throw error;
  });
  await sweep(
    store,
    objects.filter(({ key }) => key === runKey(run)),
  );
  await sweep(store, planned.blobs);
  await store.removeFolder(productionPrefix(run));
  await store.removeFolder(runPrefix(run));
  await forgetDeletion(store, run);
  return { objects, ...planned };
}

/** `rules`: null for a run whose deletion has begun, which nothing refuses any more. */
async function plan(store: Store, run: string, rules: { withProduction: boolean } | null): Promise<RunDeletion> {
  if (rules !== null) await requireRunFile(store, run);
  const objects = (await describeRuns(store)).get(run) ?? [];
  const recorded = await describeAll(store, productionPrefix(run));
  const described = await describeAll(store, BLOBS_PREFIX);
  const index = await readStoreIndex(store);
  if (rules !== null) refuseNeeded(index, run, rules.withProduction || recorded.length === 0);
  const own = index.runs.filter((each) => each.run === run);
  const whole = own.flatMap(({ steps }) => steps).map((step) => [policyName(step), false] as const);
  const named = liveBlobs({ runs: own, schedules: [] }, new Map(whole));
  const live = liveBlobs({ ...index, runs: index.runs.filter((each) => each.run !== run) });
  const isOwn = (blob: StoredObject) => named.has(blobHash(blob)) && !live.has(blobHash(blob));
  const leftBecause = findReasonToLeave(index, run);
  const blobs = leftBecause === null ? described.filter(isOwn) : [];
  const all = [...objects, ...recorded];
  return { objects: all, blobs, leftBecause, bytes: sizeOf([...all, ...blobs]) };
}

async function describeAll(store: Store, prefix: string): Promise<StoredObject[]> {
  const objects: StoredObject[] = [];
  for await (const object of store.describe(prefix)) objects.push(object);
  return objects;
}

function refuseNeeded(index: StoreIndex, run: string, mayLoseProduction: boolean): void {
  if (index.runs.some((each) => each.run === run && each.isUnderWay)) {
    const remedy = `end it with temper stop ${run}`;
    throw refusal(
      run,
      'it has not ended',
      `${remedy}; if no server knows it any more, remove its folder and run temper gc`,
    );
  }
  for (const [policy, because] of neededCheckpoints(index, run))
    if (parsePolicyName(policy)?.run === run) throw refusal(run, `${policy}: ${because}`, 'end that first');
  const recording = index.servers.find(({ records }) => records === run);
  if (recording !== undefined) throw refusal(run, `${recording.by} records under its name`, 'end that first');
  if (mayLoseProduction) return;
  const remedy = 'pass --with-production to delete these, too';
  throw refusal(run, 'it has recordings, feedback or promotions', remedy);
}

function refusal(run: string, because: string, remedy: string): TemperError {
  return badConfig(`the run ${run} cannot be deleted (${because}); ${remedy}`);
}

/** Blobs that something may be about to name. */
function findReasonToLeave(index: StoreIndex, run: string): string | null {
  const arriving = index.runs.find((each) => each.run !== run && each.file === null);
  if (arriving !== undefined)
    return `the folder runs/${arriving.run} has no run.json: it may be a copy that is under way`;
  const [twin] = findTwins(index, run);
  if (twin === undefined) return null;
  return twin.after === null
    ? `the run ${twin.run} is about to make its first checkpoint`
    : `the run ${twin.run} in progress has some of the same weights`;
}
