import { once } from 'node:events';
import { Agent, createServer, request, type ClientRequest, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { writeReply } from '../../../play/transports/http-server.ts';
import { openServingHttp, type ServingOptions } from '../../../workers/serving/serving-http.ts';
import { until } from '../../until.ts';
import { askAt } from './asking.ts';

const KEY = 'a key of this test';
const BODY = 'x'.repeat(60);
const CHAT = '/v1/chat/completions';
const KNOWN = { authorization: `Bearer ${KEY}` };

interface Asked {
  readonly asking: ClientRequest;
  readonly response: IncomingMessage;
}

const silent: ServingOptions['answer'] = () => Promise.reject(new Error('nothing is to be asked'));

async function openServing(
  answer: ServingOptions['answer'],
  limits: Pick<ServingOptions, 'maxHeldBytes' | 'limits'> = {},
): Promise<number> {
  const kept = { answer: () => null, forget: () => undefined };
  const options = { host: '127.0.0.1', port: 0, hosts: ['models.internal'], key: KEY, models: ['demo'], kept };
  const serving = await openServingHttp({ ...options, answer, ...limits });
  onTestFinished(() => serving.close());
  return serving.port;
}

async function begin(port: number): Promise<Asked> {
  const asking = request({ port, path: '/v1/responses', method: 'POST', headers: KNOWN, agent: false });
  asking.on('error', () => undefined).end(BODY);
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  response.on('error', () => undefined).resume();
  return { asking, response };
}

async function* forever(): AsyncGenerator<string> {
  for (;;) {
    yield ': waiting\n\n';
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('a body counts among those that are held until its stream has ended', async () => {
  const port = await openServing(() => Promise.resolve({ status: 200, headers: {}, events: forever() }), {
    maxHeldBytes: 100,
  });
  const first = await begin(port);
  expect(first.response.statusCode).toBe(200);
  const second = await begin(port);
  expect([second.response.statusCode, second.response.headers['retry-after']]).toEqual([429, '1']);
  first.asking.destroy();
  await until('there is room again', async () => (await begin(port)).response.statusCode === 200);
});

test('answers under a name that it was told, and no other one', async () => {
  const port = await openServing(silent);
  for (const host of ['localhost', '[::1]:8018', 'models.internal:8018'])
    expect(await askAt(port, '/v1/models', { ...KNOWN, host })).toMatchObject({ status: 200 });
  for (const host of ['evil.example', 'models.internal.evil.example']) {
    const { status, error } = await askAt(port, '/v1/models', { ...KNOWN, host });
    expect([status, error.code]).toEqual([403, 'host']);
  }
});

test('a refusal reaches a client that sends all of a long body first, on a connection that ends with it', async () => {
  const port = await openServing(silent);
  const long = 'x'.repeat(8 << 20);
  const wrong = { authorization: 'Bearer wrong' };
  for (const headers of [wrong, { ...wrong, 'content-length': `${long.length}` }])
    expect(await askAt(port, CHAT, headers, long)).toMatchObject({ status: 401 });
  expect(await askAt(port, '/v1/embeddings', KNOWN, long)).toMatchObject({ status: 404 });
});

test('a key may have blanks around it', async () => {
  const port = await openServing(silent);
  for (const headers of [{ authorization: `bEARER   ${KEY}\u00a0` }, { authorization: 'Bearer  ', 'x-api-key': KEY }])
    expect(await askAt(port, '/v1/models', headers)).toMatchObject({ status: 200 });
});

test('answers nothing at other addresses, by other methods, or of more bytes than the engine takes', async () => {
  const port = await openServing(silent);
  expect(await askAt(port, '/v1/embeddings', KNOWN, BODY)).toMatchObject({ status: 404 });
  expect(await askAt(port, CHAT, KNOWN)).toMatchObject({ status: 405 });
  expect(await askAt(port, '/v1/models', KNOWN, '{}')).toMatchObject({ status: 405 });
  const long = 'x'.repeat(17 << 20);
  expect(await askAt(port, CHAT, { ...KNOWN, 'content-length': String(long.length) }, long)).toMatchObject({
    status: 413,
  });
  expect(await askAt(port, CHAT, { ...KNOWN, 'transfer-encoding': 'chunked' }, long)).toMatchObject({ status: 413 });
});

test('a body may be nested, but not as deep that what reads it fails', async () => {
  const port = await openServing(() => Promise.resolve({ status: 200, headers: {}, json: {} }));
  const nested = (depth: number): string =>
    String.raw`{"a":"]}\"[","b":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  expect(await askAt(port, CHAT, KNOWN, nested(100))).toMatchObject({ status: 200 });
  for (const body of [nested(101), '['.repeat(200_000), '{"a":'.repeat(101)])
    expect(await askAt(port, CHAT, KNOWN, body)).toMatchObject({ status: 400 });
});

test('a client that goes away without reading ends its answer', async () => {
  let isEnded = false;
  async function* endless(): AsyncGenerator<string> {
    try {
      for (;;) yield 'x'.repeat(1 << 16);
    } finally {
      isEnded = true;
    }
  }
  const server = createServer(
    (_, response) => void writeReply(response, { status: 200, headers: {}, events: endless() }),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const asking = request({ port: (server.address() as AddressInfo).port, agent: false });
  asking.on('error', () => undefined).end();
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  asking.destroy();
  await until('the answer is ended', () => isEnded);
  server.close();
});

/** Each asks once, without a key, and stays. */
async function crowd(port: number, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) {
    socket.on('error', () => undefined).resume();
    socket.write('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n');
  }
  const settled = (socket: Socket) => new Promise((resolve) => socket.once('data', resolve).once('close', resolve));
  await Promise.all(sockets.map(settled));
  return sockets;
}

test('one process without the key holds every connection; clients that have it are answered, and keep theirs', async () => {
  const port = await openServing(silent, { limits: { maxConnections: 300 } });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const askKept = async (): Promise<number | undefined> => {
    const asking = request({ port, path: '/v1/models', headers: KNOWN, agent });
    asking.end();
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    await response.toArray();
    return asking.socket?.localPort;
  };
  const kept = await askKept();
  expect(kept).toBeGreaterThan(0);
  const first = await crowd(port, 299);
  await until('the oldest give way', () => first.some(({ closed }) => closed));
  expect(await askAt(port, '/v1/models', KNOWN)).toMatchObject({ status: 200 });
  const left = (): number => first.filter(({ closed }) => !closed).length;
  await until('256 are left', () => left() <= 256);
  await crowd(port, 40);
  await until('they have replaced older ones', () => left() <= 226);
  expect(await askKept()).toBe(kept);
});
