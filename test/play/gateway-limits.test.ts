/** Limits on what one attempt may ask for at once. Its requests are answered by nobody here: they wait. */
import type { Socket } from 'node:net';
import { afterAll, expect, onTestFinished, test } from 'vitest';

import { Connections } from '../../play/transports/gateway-connections.ts';
import { Gateway } from '../../play/transports/gateway.ts';

const gateway = new Gateway();
const endpoints: { close(): void }[] = [];
afterAll(() => endpoints.forEach((endpoint) => endpoint.close()));

async function openWaiting() {
  const started: string[] = [];
  const endpoint = await gateway.open({
    answer: ({ body }) => {
      started.push(body.slice(0, 1));
      return new Promise(() => undefined);
    },
    onTooLong: () => undefined,
    takesResult: true,
  });
  endpoints.push(endpoint);
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const post = (body: string) =>
    fetch(`${endpoint.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'x-api-key': endpoint.key },
      body,
      signal: gone.signal,
    });
  /** Waits until the gateway has it in hand. */
  const hold = async (body: string) => {
    const before = started.length;
    post(body).catch(() => undefined);
    while (started.length === before) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  return { post, hold };
}

test('128 requests of an attempt wait at once, one more is refused, and not another attempt’s', async () => {
  const { post, hold } = await openWaiting();
  for (let count = 0; count < 128; count++) await hold('x');
  const refused = await post('x');
  expect(refused.status).toBe(429);
  expect(await refused.text()).toContain('requests at once');
  const other = await openWaiting();
  await other.hold('x');
});

test('128 MB of an attempt’s requests are in memory at once, and not more', async () => {
  const { post, hold } = await openWaiting();
  const large = 'x'.repeat(15 * 1024 ** 2);
  for (let count = 0; count < 8; count++) await hold(large);
  expect((await post(large)).status).toBe(429);
  await hold('x');
});

test('an attempt has 256 connections, and a connection one attempt', () => {
  const connections = new Connections();
  const [one, other] = [{}, {}];
  const sockets = Array.from({ length: 257 }, () => ({ destroyed: false }) as Socket);
  expect(sockets.map((socket) => connections.claim(socket, one)).indexOf(false)).toBe(256);
  expect(connections.claim(sockets[0]!, one)).toBe(true);
  expect(connections.claim(sockets[0]!, other)).toBe(false);
  expect(connections.claim(sockets[256]!, other)).toBe(true);
});
