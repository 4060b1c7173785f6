import { journalsPrefix } from '../../layout.ts';
import type { Store } from '../../store.ts';

/** Steps after the commit for which journals are kept. */
export const KEPT_JOURNAL_STEPS = 2;

/** Drops the journals of a run that nothing will ask for any more. */
export async function removeJournals(store: Store, run: string, lastStep: number): Promise<void> {
  for await (const key of store.list(journalsPrefix(run))) {
    const step = Number(/\.(\d+)\/$/.exec(key)?.[1] ?? Infinity);
    if (step <= lastStep) await store.removeFolder(key.slice(0, -1));
  }
}
