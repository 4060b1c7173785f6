/** Which blobs anything in a store names: those stay. */
import pLimit from 'p-limit';

import { BLOBS_PREFIX, RUNS_PREFIX, runKey, SCHEDULES_PREFIX } from '../layout.ts';
import type { Store, StoredObject } from '../store.ts';

/** Objects that are read at the same time. */
const AT_ONCE = 32;

export interface RunFolder {
  run: string;
  objects: StoredObject[];
  newestMs: number;
  /** False: it is no run. A copy writes `run.json` last, and who deletes a run removes it first. */
  isRun: boolean;
}

export async function describeRuns(store: Store): Promise<RunFolder[]> {
  const byRun = new Map<string, StoredObject[]>();
  for await (const object of store.describe(RUNS_PREFIX)) {
    const run = object.key.split('/')[1]!;
    const objects = byRun.get(run) ?? [];
    objects.push(object);
    byRun.set(run, objects);
  }
  return [...byRun].map(([run, objects]) => ({
    run,
    objects,
    newestMs: objects.reduce((newest, { modifiedAtMs }) => Math.max(newest, modifiedAtMs), 0),
    isRun: objects.some(({ key }) => key === runKey(run)),
  }));
}

/** Any hash counts as a reference, so that those of a later version of Temper do, too. */
const HASH = /[0-9a-f]{64}/g;
const NAMING =
  /^runs\/[^/]+\/(run|prepared|vocabulary|scenarios\/[0-9a-f]{64}|branches\/\d+\/steps\/\d+\/manifest)\.json$/;

/** Hash in a blob's key. */
export const blobHash = ({ key }: StoredObject): string => key.slice(BLOBS_PREFIX.length + 1);

/** All hashes in what of runs names blobs: as they were started and prepared, vocabularies, parts of scenarios, commits. */
export function readNamed(store: Store, folders: readonly RunFolder[]): Promise<Set<string>> {
  const keys = folders.flatMap(({ objects }) => objects.map(({ key }) => key));
  return readHashes(
    store,
    keys.filter((key) => NAMING.test(key)),
  );
}

/** In schedules, whose runs are still to come, and their firings. */
export async function readScheduled(store: Store): Promise<Set<string>> {
  const keys: string[] = [];
  for await (const { key } of store.describe(SCHEDULES_PREFIX)) keys.push(key);
  return readHashes(store, keys);
}

async function readHashes(store: Store, keys: readonly string[]): Promise<Set<string>> {
  const hashes = new Set<string>();
  const limit = pLimit(AT_ONCE);
  const read = async (key: string): Promise<void> => {
    const bytes = await store.read(key);
    if (bytes === null) return;
    for (const [hash] of Buffer.from(bytes).toString('utf8').matchAll(HASH)) hashes.add(hash);
  };
  await Promise.all(keys.map((key) => limit(read, key)));
  return hashes;
}
