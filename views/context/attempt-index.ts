/**
 * Rows and text of all attempts of a run, for search: a cache beside the store, made from write-once files, that may be
 * deleted at any time. After the first time only new groups are read.
 */
import type { AttemptQuery, AttemptsView, IndexProgress } from '../api/attempt-views.ts';

export interface AttemptIndex {
  /** Rows that match, as far as the index has come. */
  search(run: string, query: AttemptQuery): Promise<AttemptsView>;
  progress(run: string): IndexProgress;
  /** Reads what is new; resolves when the index has all groups that the store had at the call. */
  update(run: string): Promise<void>;
  close(): Promise<void>;
}
