/** The index of a store's attempts, run by run, in a folder of the cache. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Store } from '../../store/store.ts';
import type { AttemptIndex } from '../context/context.ts';
import { RunIndex } from './run-index.ts';

/** Each takes some megabytes for a run of 10,000 attempts. */
const KEPT_RUNS = 16;
const NOTHING = { indexed: 0, known: 0, isComplete: false } as const;

/** `folder`: of this store alone. Null: one for this process, which goes with it. */
export function openAttemptIndex(store: Store, folder: string | null): AttemptIndex {
  const runs = new Map<string, Promise<RunIndex | null>>();
  const opened = new Map<string, RunIndex>();
  let temporary: Promise<string> | null = null;
  const root = (): Promise<string> => {
    if (folder !== null) return Promise.resolve(folder);
    temporary ??= mkdtemp(join(tmpdir(), 'temper-ui-'));
    return temporary;
  };
  const openRun = async (run: string): Promise<RunIndex | null> => {
    const opening = runs.get(run) ?? root().then((place) => RunIndex.open(store, run, join(place, run)));
    runs.delete(run);
    runs.set(run, opening);
    const [oldest] = runs.keys();
    if (runs.size > KEPT_RUNS) {
      runs.delete(oldest!);
      opened.delete(oldest!);
    }
    const index = await opening.catch((error: unknown) => {
      runs.delete(run);
      throw error;
    });
    if (index === null) runs.delete(run);
    else opened.set(run, index);
    return index;
  };
  return {
    search: async (run, query) => {
      const index = await openRun(run);
      return index === null ? { total: 0, rows: [], excerpts: {}, index: NOTHING } : index.search(query);
    },
    progress: (run) => opened.get(run)?.progress() ?? NOTHING,
    update: async (run) => {
      const known = await opened.get(run)?.isCurrent();
      if (known === false) {
        await opened.get(run)?.close();
        opened.delete(run);
        runs.delete(run);
      }
      await (await openRun(run))?.update();
    },
    close: async () => {
      await Promise.all([...opened.values()].map((index) => index.close()));
      if (temporary !== null) await rm(await temporary, { recursive: true, force: true });
    },
  };
}
