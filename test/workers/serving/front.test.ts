import { once } from 'node:events';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { openFront, type FrontOptions } from '../../../workers/serving/front.ts';
import { until } from '../../crash/project.ts';

const KEY = 'a key of this test';
const BODY = 'x'.repeat(60);

interface Asked {
  readonly asking: ClientRequest;
  readonly response: IncomingMessage;
}

async function openFrontOf(answer: FrontOptions['answer'], maxHeldBytes: number): Promise<() => Promise<Asked>> {
  const kept = { answer: () => null, forget: () => undefined };
  const front = await openFront({
    host: '127.0.0.1',
    port: 0,
    hosts: [],
    key: KEY,
    models: [],
    kept,
    answer,
    maxHeldBytes,
  });
  onTestFinished(() => front.close());
  return async () => {
    const headers = { authorization: `Bearer ${KEY}` };
    const asking = request({ port: front.port, path: '/v1/responses', method: 'POST', headers, agent: false });
    asking.on('error', () => undefined).end(BODY);
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    response.on('error', () => undefined).resume();
    return { asking, response };
  };
}

async function* forever(): AsyncGenerator<string> {
  for (;;) {
    yield ': waiting\n\n';
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('a body counts among those that are held until its stream has ended', async () => {
  const ask = await openFrontOf(() => Promise.resolve({ status: 200, headers: {}, events: forever() }), 100);
  const first = await ask();
  expect(first.response.statusCode).toBe(200);
  const second = await ask();
  expect([second.response.statusCode, second.response.headers['retry-after']]).toEqual([429, '1']);
  first.asking.destroy();
  await until('there is room again', async () => (await ask()).response.statusCode === 200);
});
