/** A view's context over a store: no server, no vocabulary and an empty index, unless a test brings them. */
import type { Store } from '../../store/store.ts';
import type { AttemptIndex, ViewContext } from '../../views/context/context.ts';

const EMPTY = { indexed: 0, known: 0, isComplete: true };

const EMPTY_INDEX: AttemptIndex = {
  search: async () => ({ total: 0, rows: [], excerpts: {}, index: EMPTY }),
  progress: () => EMPTY,
  update: () => Promise.resolve(),
  close: () => Promise.resolve(),
};

export function contextOf(store: Store, changes: Partial<ViewContext> = {}): ViewContext {
  return {
    store,
    index: EMPTY_INDEX,
    readVocabulary: () => Promise.resolve(null),
    now: () => Date.now(),
    ...changes,
  };
}
