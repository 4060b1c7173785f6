/**
 * A run as a whole: refused while it is in progress, or something uses it or is about to. Blobs that anything else in the
 * store names stay. Its name is marked first, `run.json` goes next, its folder last: killed anywhere, it is no run any
 * more, and deleting it again does the rest.
 */
import { badConfig, type TemperError } from '../../core/failures.ts';
import { parsePolicyName } from '../../core/policy-name.ts';
import { BLOBS_PREFIX, productionPrefix, runKey, runPrefix } from '../layout.ts';
import { forgetDeletion, isBeingDeleted, markDeleted } from './deletions.ts';
import { readIntended } from './intended.ts';
import { blobHash, describeRuns, readNamed, readScheduled, type RunFolder } from './named.ts';
import { sizeOf } from './checkpoints.ts';
import { adapterHashes, readCommits } from './prune.ts';
import { isUnderWay, requireRun } from './run-reader.ts';
import { readServers } from './servers.ts';
import type { Store, StoredObject } from '../store.ts';

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
  if (!(await isBeingDeleted(store, run))) await refuseNeeded(store, run, withProduction);
  const folders = await describeRuns(store);
  const own = folders.filter((folder) => folder.run === run);
  const others = folders.filter((folder) => folder.run !== run);
  const named = await readNamed(store, own);
  const elsewhere = [await readNamed(store, others), await readScheduled(store)];
  const leftBecause = await findTwin(store, run, others);
  const blobs: StoredObject[] = [];
  for await (const blob of store.describe(BLOBS_PREFIX)) {
    const isOwn = named.has(blobHash(blob)) && !elsewhere.some((hashes) => hashes.has(blobHash(blob)));
    if (leftBecause === null && isOwn) blobs.push(blob);
  }
  const objects = own.flatMap((folder) => folder.objects);
  for await (const object of store.describe(productionPrefix(run))) objects.push(object);
  return { objects, blobs, leftBecause, bytes: sizeOf([...objects, ...blobs]) };
}

export async function deleteRun(store: Store, run: string, withProduction = false): Promise<RunDeletion> {
  if (!(await isBeingDeleted(store, run))) {
    await refuseNeeded(store, run, withProduction);
    await markDeleted(store, run);
    await refuseContinued(store, run, withProduction);
  }
  const plan = await planRunDeletion(store, run);
  const file = plan.objects.find(({ key }) => key === runKey(run));
  if (file !== undefined) await store.removeUnchanged(file);
  for (const blob of plan.blobs) await store.removeUnchanged(blob);
  await store.removeFolder(productionPrefix(run));
  await store.removeFolder(runPrefix(run));
  await forgetDeletion(store, run);
  return plan;
}

/** Another process may have continued the run before it was marked; after that none does. */
async function refuseContinued(store: Store, run: string, withProduction: boolean): Promise<void> {
  try {
    await refuseNeeded(store, run, withProduction);
  } catch (error) {
    await forgetDeletion(store, run);
    throw error;
  }
}

async function refuseNeeded(store: Store, run: string, withProduction: boolean): Promise<void> {
  await requireRun(store, run);
  if (await isUnderWay(store, run)) {
    const remedy = `end it with temper stop ${run} or temper cancel ${run}`;
    throw refusal(
      run,
      'it has not ended',
      `${remedy}; if no server knows it any more, remove its folder and run temper gc`,
    );
  }
  for (const [policy, because] of await readIntended(store, run))
    if (parsePolicyName(policy)?.run === run) throw refusal(run, `${policy}: ${because}`, 'end that first');
  const recording = (await readServers(store)).find(({ records }) => records === run);
  if (recording !== undefined) throw refusal(run, `${recording.by} records under its name`, 'end that first');
  const { done } = await store.describe(productionPrefix(run))[Symbol.asyncIterator]().next();
  if (withProduction || done === true) return;
  const remedy = 'pass --with-production to delete these, too';
  throw refusal(run, 'it has recordings, feedback or promotions', remedy);
}

function refusal(run: string, because: string, remedy: string): TemperError {
  return badConfig(`the run ${run} cannot be deleted (${because}); ${remedy}`);
}

/** A run in progress that makes the same bytes finds a blob in its place, and names it only later. */
async function findTwin(store: Store, run: string, others: readonly RunFolder[]): Promise<string | null> {
  const adapters = new Set((await readCommits(store, run)).flatMap(adapterHashes));
  for (const { run: other, isRun } of others) {
    if (!isRun) return `the folder runs/${other} has no run.json: it may be a copy that is under way`;
    if (!(await isUnderWay(store, other))) continue;
    const commits = await readCommits(store, other);
    if (commits.length === 0) return `the run ${other} is about to make its first checkpoint`;
    if (commits.flatMap(adapterHashes).some((sha256) => adapters.has(sha256)))
      return `the run ${other} in progress has some of the same weights`;
  }
  return null;
}
