/** The gateway as a hostile program meets it: what is not its own is refused, and what it does hurts nobody else. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { request as sendRequest } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';

import type { Recorder } from '../../play/recorder/recorder.ts';
import { Gateway, type AttemptEndpoint } from '../../play/transports/gateway.ts';
import { createRequestHandler } from '../../play/transports/gateway-calls.ts';
import { MODEL, playOne } from './play.ts';
import { sharedEngine } from './shared-engine.ts';

const engine = await sharedEngine();

const BODY = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'a' }] });
const gateway = new Gateway();
const CALLS = '/v1/chat/completions';

/** An attempt whose agent does what a program could do. */
async function playWith(use: (endpoint: AttemptEndpoint) => Promise<unknown>) {
  let recorder: Recorder | null = null;
  const rollout = async (): Promise<number> => {
    const endpoint = await gateway.open(
      createRequestHandler({ recorder: recorder!, log: () => undefined, rewrite: null, takesResult: true }),
    );
    try {
      await use(endpoint);
      return 1;
    } finally {
      endpoint.close();
    }
  };
  const attempt = await playOne(engine, rollout, {
    rollout: { attemptTimeoutMs: 25_000 },
    onRecorder: (_, created) => void (recorder = created),
  });
  expect(attempt.failure?.message).toBeUndefined();
  return attempt;
}

interface Answer {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly text: string;
}

/** On a connection of its own, and nothing of the path is tidied up before it is sent. */
function post(origin: string, key: string, path = CALLS, headers = {}, body = BODY): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(origin);
    const sent = { authorization: `Bearer ${key}`, ...headers };
    const options = { host: '127.0.0.1', port, path, method: 'POST', headers: sent, agent: false };
    const sending = sendRequest(options, (answer) => {
      let text = '';
      answer.on('data', (chunk) => (text += String(chunk)));
      answer.on('end', () => resolve({ status: answer.statusCode, type: answer.headers['content-type'], text }));
    });
    sending.on('error', reject).end(body);
  });
}

const statusOf = async (answer: Promise<Answer>) => (await answer).status;

test('a call with the attempt’s key is answered, in either header', async () => {
  const attempt = await playWith(async ({ origin, key }) => {
    expect(await statusOf(post(origin, key))).toBe(200);
    expect(await statusOf(post(origin, '', CALLS, { authorization: '', 'x-api-key': key }))).toBe(200);
    expect(await statusOf(post(origin, key, `${CALLS}?beta=true`))).toBe(200);
  });
  expect(attempt.calls).toHaveLength(3);
});

test('no other key opens anything: none, one with a bit changed, that of an attempt that is over, the engine’s', async () => {
  let over = '';
  await playWith(async ({ key }) => void (over = key));
  const attempt = await playWith(async ({ origin, key }) => {
    const changed = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
    const mixed = `${key.slice(0, 24)}${over.slice(24)}`;
    for (const wrong of ['', 'temper', changed, mixed, over, engine.key])
      expect(await statusOf(post(origin, wrong)), wrong).toBe(401);
  });
  expect(attempt.calls).toEqual([]);
});

test('another attempt’s connection cannot be used', async () => {
  await playWith(async (mine) => {
    await playWith(async (other) => {
      const socket = await open(mine.origin);
      const ask = ({ key }: AttemptEndpoint) =>
        `POST ${CALLS} HTTP/1.1\r\nhost: ${new URL(mine.origin).host}\r\nauthorization: Bearer ${key}\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;
      expect(await exchange(socket, ask(mine))).toContain('HTTP/1.1 200');
      expect(await exchange(socket, ask(other))).toContain('HTTP/1.1 429');
    });
  });
});

test.each(['/v1/chat/completions/', '/v1/%63hat/completions', '/v1/models', '/'])(
  'the path %s is none',
  async (path) => {
    await playWith(async ({ origin, key }) => expect(await statusOf(post(origin, key, path))).toBe(404));
  },
);

test('pages of a browser are refused, and other host names', async () => {
  await playWith(async ({ origin, key }) => {
    expect(await statusOf(post(origin, key, CALLS, { origin: 'http://localhost' }))).toBe(403);
    expect(await statusOf(post(origin, key, CALLS, { host: 'evil.example' }))).toBe(403);
    expect(await statusOf(post(origin, key, CALLS, { host: `localhost:${new URL(origin).port}` }))).toBe(200);
  });
});

test('a body of 100 MB is refused, and the attempt plays on', async () => {
  const attempt = await playWith(async ({ origin, key }) => {
    const answer = await post(origin, key, CALLS, {}, 'x'.repeat(100 * 1024 ** 2));
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'too_large' } });
    expect(await statusOf(post(origin, key))).toBe(200);
  });
  expect(attempt).toMatchObject({ truncated: true, reward: 1 });
});

test('a thousand connections without a key keep out nobody, and those of an attempt end with it', async () => {
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  await playWith(async (hostile) => {
    await playWith(async (other) => {
      for (let count = 0; count < 1000; count++) sockets.push(await open(hostile.origin));
      expect(await statusOf(post(other.origin, other.key))).toBe(200);
      expect(gateway.connections).toBeLessThan(300);
    });
    const owned = await open(hostile.origin);
    const gone = once(owned, 'close');
    owned.write(
      `POST ${CALLS} HTTP/1.1\r\nhost: ${new URL(hostile.origin).host}\r\nx-api-key: ${hostile.key}\r\ncontent-length: 10\r\n\r\n`,
    );
    sockets.push(owned);
    // Its headers are read once this is answered.
    expect(await statusOf(post(hostile.origin, hostile.key))).toBe(200);
    hostile.close();
    await gone;
  });
});

test('who gives a call up leaves nothing behind', async () => {
  const attempt = await playWith(async ({ origin, key }) => {
    engine.failNext({ hang: true });
    const gaveUp = new AbortController();
    const before = engine.received;
    const asking = fetch(origin + CALLS, {
      method: 'POST',
      body: BODY,
      headers: { 'x-api-key': key },
      signal: gaveUp.signal,
    });
    while (engine.received === before) await new Promise((resolve) => setTimeout(resolve, 5));
    gaveUp.abort();
    await expect(asking).rejects.toThrow(/abort/);
    expect(await statusOf(post(origin, key))).toBe(200);
  });
  expect(attempt.calls).toHaveLength(1);
});

test('a request that does not come to its end is ended', async () => {
  const impatient = new Gateway({ headersTimeout: 10, requestTimeout: 10 });
  const endpoint = await impatient.open({
    answer: () => Promise.reject(new Error('asked')),
    onTooLong: () => undefined,
    takesResult: true,
  });
  const socket = await open(endpoint.origin);
  const host = `host: ${new URL(endpoint.origin).host}`;
  socket.write(`POST ${CALLS} HTTP/1.1\r\n${host}\r\nx-api-key: ${endpoint.key}\r\ncontent-length: 10\r\n\r\nhalf`);
  await once(socket.resume(), 'close');
  expect(impatient.connections).toBe(0);
});

test('Anthropic’s messages and OpenAI’s responses are answered as well', async () => {
  const attempt = await playWith(async ({ origin, key }) => {
    const messages = JSON.stringify({ ...JSON.parse(BODY), max_tokens: 5 });
    const message = await post(origin, '', '/v1/messages', { 'x-api-key': key }, messages);
    expect(JSON.parse(message.text)).toMatchObject({ type: 'message', role: 'assistant' });
    const response = await post(origin, key, '/v1/responses', {}, JSON.stringify({ model: MODEL, input: 'a' }));
    expect(JSON.parse(response.text)).toMatchObject({ object: 'response', status: 'completed' });
  });
  expect(attempt.calls).toHaveLength(2);
});

test('a stream is told as events', async () => {
  await playWith(async ({ origin, key }) => {
    const body = JSON.stringify({ ...JSON.parse(BODY), stream: true });
    const answer = await post(origin, key, CALLS, {}, body);
    expect(answer.type).toContain('text/event-stream');
    expect(answer.text).toMatch(/^data: \{[^]*data: \[DONE\]\n\n$/);
  });
});

async function open(origin: string): Promise<Socket> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function exchange(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return answer.toString();
}
