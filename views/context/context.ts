/** The sources of every view. */
import type { Store } from '../../store/store.ts';
import type { AttemptIndex } from './attempt-index.ts';

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

/** Bytes of each token by its id. */
export interface Vocabulary {
  readonly bytesOf: (id: number) => Uint8Array;
  /** Whether the id is a control token, such as the end of a turn. */
  readonly isControl: (id: number) => boolean;
}

/** A view of something that there is not. */
export class NotFound extends Error {}
