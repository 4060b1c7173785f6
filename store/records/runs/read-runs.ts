import pLimit from 'p-limit';
import { isUnreadable } from '../../../core/contract/failures.ts';
import { listRuns, readRun, type StoredRun } from './run-reader.ts';
import type { Store } from '../../store.ts';

/** Of the runs of a store. */
export const READ_AT_ONCE = 32;

/** All runs that can be read: another one, perhaps pulled from another store, must not hide them. */
export async function readRuns(store: Store, onUnreadable: (error: unknown) => void): Promise<StoredRun[]> {
  const limit = pLimit(READ_AT_ONCE);
  const read = (name: string) =>
    readRun(store, name).catch((error: unknown) => {
      if (!isUnreadable(error)) throw error;
      onUnreadable(error);
      return null;
    });
  const found = await Promise.all((await listRuns(store)).map((name) => limit(read, name)));
  return found.filter((run) => run !== null);
}
