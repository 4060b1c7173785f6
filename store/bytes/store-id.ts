import { randomUUID } from 'node:crypto';

import { TemperError } from '../../core/contract/failures.ts';
import { STORE_ID_PATTERN, STORE_KEY } from '../../core/contract/wire-constants.ts';
import { decodeJson, encodeJson } from './json.ts';
import type { Store } from '../store.ts';

/** The random name of a store; its first reader creates it. */
export async function readStoreId(store: Pick<Store, 'read' | 'publish'>): Promise<string> {
  const bytes =
    (await store.read(STORE_KEY)) ?? (await store.publish(STORE_KEY, encodeJson({ id: randomUUID() }))).bytes;
  const { id } = (decodeJson(bytes, STORE_KEY) ?? {}) as { id?: unknown };
  if (typeof id === 'string' && STORE_ID_PATTERN.test(id)) return id;
  throw new TemperError(
    'StoreCorrupt',
    `${STORE_KEY} must hold the store's id (letters, digits and hyphens), got ${JSON.stringify(id ?? null).slice(0, 80)}; restore it from a copy`,
  );
}

/** Null if nothing was ever stored: a query must not create a store. */
export async function findStoreId(store: Pick<Store, 'id' | 'read'>): Promise<string | null> {
  return (await store.read(STORE_KEY)) === null ? null : store.id();
}
