import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';

import { readBounded } from '../../../core/text/read-bounded.ts';
import { callHttp, type HttpRequest } from '../../../core/text/http.ts';

const KEY = 'a-key-of-some-length';

/** A call with a key of what a server answers so. */
async function call(answer: RequestListener, request: Partial<HttpRequest> = {}) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/path`;
  const caller = { system: 'Somebody', keyVariable: 'SOME_KEY', key: KEY, fetch, signal: AbortSignal.timeout(60_000) };
  return callHttp(caller, { url: `${url}?token=secret`, ...request });
}

test('a key that a long refusal repeats is hidden before the text is cut', async () => {
  const message = `${'x'.repeat(290)}${KEY}`;
  const refused = call((_, response) => response.writeHead(400).end(JSON.stringify({ message })));
  await expect(refused).rejects.toThrow(
    /^Somebody refused the request \(GET http:\/\/127\.0\.0\.1:\d+\/path answered 400: x+\[key\]\)$/,
  );
});

test('no signature of an address that a refusal repeats is shown', async () => {
  const said = ['X-Amz-Signature', 'Signature', 'sig', 'token'].map((name) => `http://a/b?${name}=secret&c`).join(' ');
  await expect(call((_, response) => response.writeHead(400).end(said))).rejects.toThrow(
    'answered 400: http://a/b?X-Amz-Signature=[key]&c http://a/b?Signature=[key]&c http://a/b?sig=[key]&c http://a/b?token=[key]&c)',
  );
});

test('an answer has a limit, and of a refusal without end the beginning is read', async () => {
  await expect(readBounded(new Response('x'.repeat(2 ** 20 + 1)), 2 ** 20)).rejects.toThrow('has more than 1 MiB');
  const endless = call((_, response) => {
    const write = (): void => void (response.destroyed || response.write('no '.repeat(20_000), write));
    response.writeHead(400);
    write();
  });
  await expect(endless).rejects.toThrow('answered 400: no no');
});

test.each([
  [400, 'DeploymentFailed'],
  [401, 'BadConfig'],
  [403, 'BadConfig'],
  [404, 'DeploymentFailed'],
  [408, 'TargetUnavailable'],
  [429, 'TargetUnavailable'],
  [503, 'TargetUnavailable'],
])('an answer of %i is %s', async (status, type) => {
  await expect(call((_, response) => response.writeHead(status).end())).rejects.toMatchObject({ type });
});

test('a refused key is called by its variable, and never shown', async () => {
  await expect(call((_, response) => response.writeHead(401).end(KEY))).rejects.toThrow(
    /answered 401: \[key\]\); check the key in SOME_KEY, and its rights$/,
  );
});

test.each([
  ['2', 2000],
  ['Thu, 01 Jan 1970 00:00:00 GMT', null],
  ['soon', null],
])('a server that says "retry-after: %s" is called again after %s ms', async (retryAfter, retryAfterMs) => {
  const busy = call((_, response) => response.writeHead(429, { 'retry-after': retryAfter }).end());
  await expect(busy).rejects.toMatchObject({ retryAfterMs });
});

test('a key follows no redirect', async () => {
  const sent: (string | undefined)[] = [];
  const redirected = call(({ headers }, response) => {
    sent.push(headers.authorization);
    response.writeHead(302, { location: '/elsewhere' }).end();
  });
  await expect(redirected).rejects.toMatchObject({ type: 'TargetUnavailable' });
  expect(sent).toEqual([`Bearer ${KEY}`]);
});
