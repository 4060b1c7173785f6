/** The sources of every view. */
import type { Store } from '../../store/store.ts';
import type { AttemptQuery, AttemptsView, IndexProgress } from '../api/attempt-views.ts';

export interface ViewContext {
  readonly store: Store;
  /** Rows and text of attempts, for search. */
  readonly index: AttemptIndex;
  /** Text pieces of token ids, by the base model's vocabulary; null if it is not known here. */
  readonly readVocabulary: (run: string) => Promise<Vocabulary | null>;
  readonly now: () => number;
  /** Folder of the cache; absent or null: nothing is kept between processes. */
  readonly cacheFolder?: string | null;
}

/**
 * Rows and text of all attempts of a run, for search: a cache beside the store, made from write-once files, that may be
 * deleted at any time. After the first time only new groups are read.
 */
export interface AttemptIndex {
  /** Rows that match, as far as the index has come. */
  search(run: string, query: AttemptQuery): Promise<AttemptsView>;
  progress(run: string): IndexProgress;
  /** Reads what is new; resolves when the index has all groups that the store had at the call. */
  update(run: string): Promise<void>;
  close(): Promise<void>;
}

/** Bytes of each token by its id. */
export interface Vocabulary {
  readonly bytesOf: (id: number) => Uint8Array;
  /** Whether the id is a control token, such as the end of a turn. */
  readonly isControl: (id: number) => boolean;
}

/** A view of something that there is not. */
export class NotFound extends Error {}
