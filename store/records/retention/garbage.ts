/**
 * Finds garbage: blobs that nothing needs, unfinished writes, journals of runs that have ended, and folders of runs without
 * a `run.json`. Recent objects stay: a reference may be about to be written.
 */
import pLimit from 'p-limit';

import { BLOBS_PREFIX, journalsPrefix, RUNS_PREFIX } from '../../layout.ts';
import type { Store, StoredObject } from '../../store.ts';
import { liveBlobs } from './live-blobs.ts';
import { readStoreIndex, type IndexedRun } from './store-index.ts';

export type GarbageKind = 'unfinished' | 'blob' | 'journal' | 'folder';

interface Garbage extends StoredObject {
  kind: GarbageKind;
  /** Run of a journal or a folder. */
  run: string | null;
}

export interface GarbagePlan {
  objects: Garbage[];
  /** Possible garbage that stays, and why. */
  notes: string[];
}

/** Objects that are removed at the same time. */
const AT_ONCE = 32;

/** Only what was written last before `beforeMs`. */
export async function planGarbage(store: Store, beforeMs: number): Promise<GarbagePlan> {
  const notes: string[] = [];
  const objects: Garbage[] = [];
  const byRun = await describeRuns(store);
  const blobs: StoredObject[] = [];
  for await (const blob of store.describe(BLOBS_PREFIX)) blobs.push(blob);
  for await (const object of store.unfinished()) objects.push({ ...object, kind: 'unfinished', run: null });
  // Read after the blobs were listed: a later reference to one of them has written it again.
  const index = await readStoreIndex(store);
  const folders = index.runs.map((run) => ({ ...run, objects: byRun.get(run.run) ?? [] }));
  for (const folder of folders) for (const found of findInFolder(folder, beforeMs)) objects.push(found);
  const [live, blobsBeforeMs] = [liveBlobs(index), findHorizon(folders, beforeMs, notes)];
  for (const blob of blobs)
    if (blob.modifiedAtMs < blobsBeforeMs && !live.has(blobHash(blob)))
      objects.push({ ...blob, kind: 'blob', run: null });
  return { objects: objects.filter(({ modifiedAtMs }) => modifiedAtMs < beforeMs), notes };
}

export async function removeGarbage(store: Store, beforeMs: number): Promise<GarbagePlan> {
  const { objects, notes } = await planGarbage(store, beforeMs);
  return { objects: await sweep(store, objects), notes };
}

/** Removes objects; one that was written since it was described stays. Resolves to those that went. */
export async function sweep<T extends StoredObject>(store: Store, objects: readonly T[]): Promise<T[]> {
  const limit = pLimit(AT_ONCE);
  const remove = async (object: T): Promise<T[]> => ((await store.removeUnchanged(object)) ? [object] : []);
  return (await Promise.all(objects.map((object) => limit(remove, object)))).flat();
}

/** Objects in the folders of runs, by the folder's name. */
export async function describeRuns(store: Store): Promise<Map<string, StoredObject[]>> {
  const byRun = new Map<string, StoredObject[]>();
  for await (const object of store.describe(RUNS_PREFIX)) {
    const run = object.key.split('/')[1]!;
    const objects = byRun.get(run) ?? [];
    objects.push(object);
    byRun.set(run, objects);
  }
  return byRun;
}

/** Hash in a blob's key. */
export const blobHash = ({ key }: StoredObject): string => key.slice(BLOBS_PREFIX.length + 1);

interface RunFolder extends IndexedRun {
  readonly objects: readonly StoredObject[];
}

const newestMs = (objects: readonly StoredObject[]): number =>
  objects.reduce((newest, { modifiedAtMs }) => Math.max(newest, modifiedAtMs), 0);

/** All of a folder without a run, and the journals of one that has ended: continuing it repeats their calls. */
function findInFolder({ run, file, isUnderWay, objects }: RunFolder, beforeMs: number): Garbage[] {
  const found = file === null ? objects : objects.filter(({ key }) => key.startsWith(`${journalsPrefix(run)}/`));
  if (isUnderWay || newestMs(found) >= beforeMs) return [];
  return found.map((object) => ({ ...object, kind: file === null ? 'folder' : 'journal', run }));
}

/** Latest write time of blobs that are safe to remove: newer ones may be about to be referenced. */
function findHorizon(folders: readonly RunFolder[], beforeMs: number, notes: string[]): number {
  const arriving = folders.find(({ file, objects }) => file === null && newestMs(objects) >= beforeMs);
  if (arriving !== undefined) {
    const reason = 'has no run.json and was written lately, as a copy that is under way';
    notes.push(`blobs are not looked for: the folder runs/${arriving.run} ${reason}`);
    return 0;
  }
  let horizon = beforeMs;
  for (const { run, objects } of folders.filter(({ file, isUnderWay }) => isUnderWay && file?.loop !== undefined)) {
    // A script's next step is named by its commit alone, and that may wait for a GPU worker for days.
    const newest = newestMs(objects.filter(({ key }) => key.endsWith('/manifest.json')));
    if (newest >= horizon) continue;
    horizon = newest;
    notes.push(
      `blobs since the last commit of ${run} stay: its script has not closed it, and may be about to train them`,
    );
  }
  return horizon;
}
