/** One pool of connections to an engine: what comes back is bounded. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test, vi } from 'vitest';

import { MAX_ANSWER_BYTES } from '../../core/contract/wire-constants.ts';
import { connectEngine } from '../../play/connections/engine-connection.ts';

test('an answer without end is given up at its bound, and the connection with it', async () => {
  const chunk = Buffer.alloc(8 * 1024 ** 2);
  let numBytes = 0;
  let isCut = false;
  const server = createServer((_request, response) => {
    const pour = (): void => {
      while (!response.destroyed && response.write(chunk)) numBytes += chunk.length;
      numBytes += chunk.length;
    };
    response.on('drain', pour).on('close', () => {
      isCut = true;
    });
    pour();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const connection = connectEngine({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: null });
  const asked = connection.post('{}', { headers: {}, deadlineMs: 240_000, signals: [] });
  await expect(asked).rejects.toThrow('an answer of more than 256 MiB');
  await vi.waitFor(() => expect(isCut).toBe(true), 60_000);
  expect(numBytes).toBeLessThan(2 * MAX_ANSWER_BYTES);
  await connection.close();
  server.close();
}, 300_000);
