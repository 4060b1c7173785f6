/** Lanes from Temporal's history, while a server answers. */
import type { Store } from '../../store/store.ts';
import type { ViewContext } from '../../views/context/context.ts';
import type { TemporalClient } from '../../workers/connection/connection.ts';
import { findStoreId } from '../connections/store-id.ts';
import type { ReadHistory } from './history/read-history.ts';

/** `server`: the one that answers now; null: none. The store may be made later. */
export function historySource(store: Store, server: () => TemporalClient | null): () => ViewContext['readHistory'] {
  let reader: { readonly server: TemporalClient; readonly read: ReadHistory } | null = null;
  const read = async (current: TemporalClient, run: string) => {
    const storeId = await findStoreId(store);
    if (storeId === null) return null;
    const { createHistoryReader } = await import('./history/read-history.ts');
    if (reader?.server !== current) reader = { server: current, read: createHistoryReader(current, storeId) };
    return reader.read(run);
  };
  return () => {
    const current = server();
    return current === null ? null : (run) => read(current, run);
  };
}
