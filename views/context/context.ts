/** The sources of every view. */
import type { Store } from '../../store/store.ts';
import type { AttemptQuery } from '../api/attempt-query.ts';
import type { AttemptsView, IndexProgress } from '../api/attempt-views.ts';

/** Of the runs themselves, without what their attempts said. */
export interface RunContext {
  readonly store: Store;
  readonly now: () => number;
  /** Folder of the cache; absent or null: nothing is kept between processes. */
  readonly cacheFolder?: string | null;
  /** What a run waits for as its server says, which the store does not know; absent: nobody asks. */
  readonly waitOf?: (run: string) => string | null;
}

export interface ViewContext extends RunContext {
  /** Rows and text of attempts, for search. */
  readonly index: AttemptIndex;
  /** Text pieces of token ids, by the base model's vocabulary; null if it is not known here. */
  readonly readVocabulary: (run: string) => Promise<Vocabulary | null>;
  /** Of groups in a page that is mailed; absent: those of a window. */
  readonly groupBounds?: GroupBounds;
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

/** Limits that keep an answer, or a page, small. */
export interface AttemptBounds {
  readonly calls: number;
  /** Characters of a message. */
  readonly textLength: number;
}

export interface GroupBounds extends AttemptBounds {
  readonly attempts: number;
  /** Characters of each message of a judge's prompt. */
  readonly promptLength: number;
  /** Characters of all attempts together; at least one is shown. */
  readonly total: number;
}

/** Bytes of each token by its id. */
export interface Vocabulary {
  readonly bytesOf: (id: number) => Uint8Array;
  /** Whether the id is a control token, such as the end of a turn. */
  readonly isControl: (id: number) => boolean;
}

/** A view of something that there is not. */
export class NotFound extends Error {}

/** Requests for the same answer at the same time: it is made once, so that ten clients cost about as much as one. */
export class SharedAnswers {
  readonly #making = new Map<string, Promise<object>>();

  /** `key` names all that the answer depends on: who asks after a change must not get an answer from before. */
  async ask(key: string, make: () => Promise<object>): Promise<object> {
    const shared = this.#making.get(key);
    if (shared !== undefined) return shared;
    const making = make();
    this.#making.set(key, making);
    try {
      return await making;
    } finally {
      this.#making.delete(key);
    }
  }
}
