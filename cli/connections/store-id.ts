import { STORE_KEY } from '../../core/wire-constants.ts';
import type { Store } from '../../store/store.ts';

/** Null if nothing was ever stored: a query must not create a store. */
export async function findStoreId(store: Pick<Store, 'id' | 'read'>): Promise<string | null> {
  return (await store.read(STORE_KEY)) === null ? null : store.id();
}
