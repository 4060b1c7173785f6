import { expect, test } from 'vitest';

import { readStoreId } from '../../../store/bytes/store-id.ts';
import { bytes, failureOf } from './failure-of.ts';

const storeWith = (text: string | null) => ({
  read: () => Promise.resolve(text === null ? null : bytes(text)),
  publish: (_: string, made: Uint8Array) => Promise.resolve({ created: true, bytes: made }),
});

test('a store without an id gets a random one, which is its folder’s and queues’ name', async () => {
  const ids = await Promise.all([1, 2].map(() => readStoreId(storeWith(null))));
  expect(new Set(ids).size).toBe(2);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
});

test.each(['{"id":"../b"}', '{"id":7}', '{}', '[]', 'null'])(
  'the id %s of a foreign store is refused',
  async (text) => {
    const failure = await failureOf(readStoreId(storeWith(text)));
    expect(failure).toMatchObject({
      type: 'StoreCorrupt',
      message: expect.stringContaining("must hold the store's id"),
    });
  },
);
