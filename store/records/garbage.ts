/**
 * Finds garbage: unreferenced blobs, unfinished writes, journals of runs that have ended, and folders of runs without a
 * `run.json`. Recent objects stay: a reference may be about to be written.
 */
import pLimit from 'p-limit';

import { BLOBS_PREFIX, journalsPrefix } from '../layout.ts';
import { blobHash, describeRuns, readNamed, readScheduled, type RunFolder } from './named.ts';
import { isEnded, readRun } from './run-reader.ts';
import type { Store, StoredObject } from '../store.ts';

export type GarbageKind = 'unfinished' | 'blob' | 'journal' | 'folder';

export interface Garbage extends StoredObject {
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
  const folders = await describeRuns(store);
  const blobs: StoredObject[] = [];
  for await (const blob of store.describe(BLOBS_PREFIX)) blobs.push(blob);
  // Read after the blobs were listed: a later reference to one of them has written it again.
  const [byRuns, bySchedules] = [await readNamed(store, folders), await readScheduled(store)];
  const objects: Garbage[] = [];
  for await (const object of store.unfinished()) objects.push({ ...object, kind: 'unfinished', run: null });
  for (const folder of folders) for (const found of await findInFolder(store, folder, beforeMs)) objects.push(found);
  const blobsBeforeMs = await findHorizon(store, folders, beforeMs, notes);
  for (const blob of blobs)
    if (blob.modifiedAtMs < blobsBeforeMs && ![byRuns, bySchedules].some((named) => named.has(blobHash(blob))))
      objects.push({ ...blob, kind: 'blob', run: null });
  return { objects: objects.filter(({ modifiedAtMs }) => modifiedAtMs < beforeMs), notes };
}

/** Plans, and plans again right before anything goes; an object that was written meanwhile stays. */
export async function removeGarbage(store: Store, beforeMs: number): Promise<GarbagePlan> {
  const first = new Set((await planGarbage(store, beforeMs)).objects.map(({ key }) => key));
  const { objects, notes } = await planGarbage(store, beforeMs);
  const limit = pLimit(AT_ONCE);
  const removing = objects
    .filter((object) => first.has(object.key))
    .map((object) => limit(async () => ((await store.removeUnchanged(object)) ? [object] : [])));
  const removed = (await Promise.all(removing)).flat();
  return { objects: removed, notes };
}

/** All of a folder without a run, and the journals of one that has ended: continuing it repeats their calls. */
async function findInFolder(store: Store, folder: RunFolder, beforeMs: number): Promise<Garbage[]> {
  const { run, objects, newestMs, isRun } = folder;
  if (!isRun) return newestMs < beforeMs ? objects.map((object) => ({ ...object, kind: 'folder', run })) : [];
  const journals = objects.filter(({ key }) => key.startsWith(`${journalsPrefix(run)}/`));
  if (journals.length === 0 || journals.some(({ modifiedAtMs }) => modifiedAtMs >= beforeMs)) return [];
  const state = (await readRun(store, run))?.state ?? null;
  if (state === null || !isEnded(state)) return [];
  return journals.map((object) => ({ ...object, kind: 'journal', run }));
}

/** Latest write time of blobs that are safe to remove: newer ones may be about to be referenced. */
async function findHorizon(
  store: Store,
  folders: readonly RunFolder[],
  beforeMs: number,
  notes: string[],
): Promise<number> {
  const arriving = folders.find(({ isRun, newestMs }) => !isRun && newestMs >= beforeMs);
  if (arriving !== undefined) {
    const reason = 'has no run.json and was written lately, as a copy that is under way';
    notes.push(`blobs are not looked for: the folder runs/${arriving.run} ${reason}`);
    return 0;
  }
  let horizon = beforeMs;
  for (const { run, objects } of folders.filter(({ isRun }) => isRun)) {
    const stored = await readRun(store, run);
    if (stored?.file.loop === undefined || (stored.state !== null && isEnded(stored.state))) continue;
    // A script's next step is named by its commit alone, and that may wait for a GPU worker for days.
    const committed = objects.filter(({ key }) => key.endsWith('/manifest.json'));
    const newest = committed.reduce((latest, { modifiedAtMs }) => Math.max(latest, modifiedAtMs), 0);
    if (newest >= horizon) continue;
    horizon = newest;
    notes.push(
      `blobs since the last commit of ${run} stay: its script has not closed it, and may be about to train them`,
    );
  }
  return horizon;
}
