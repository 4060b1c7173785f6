import { randomUUID } from 'node:crypto';

import { STORE_KEY } from '../../core/wire-constants.ts';
import { decodeJson, encodeJson } from './json.ts';
import type { Store } from '../store.ts';

/** The random name of a store; who asks first makes it. */
export async function readStoreId(store: Pick<Store, 'read' | 'publish'>): Promise<string> {
  const bytes =
    (await store.read(STORE_KEY)) ?? (await store.publish(STORE_KEY, encodeJson({ id: randomUUID() }))).bytes;
  return (decodeJson(bytes, STORE_KEY) as { id: string }).id;
}
