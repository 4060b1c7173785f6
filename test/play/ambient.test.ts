/** Agents whose clients are made once, for a hosted model: each call belongs to the attempt that makes it. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { afterAll, expect, test } from 'vitest';

import { defineAgent } from '../../sdk/index.ts';
import { patchGlobalFetch } from '../../play/transports/ambient.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import { playAttempts, type TestRollout } from './play.ts';
import { sharedEngine } from './shared-engine.ts';

/** Stands for the internet. */
const asked: string[] = [];
const network = createServer((request, response) => {
  asked.push(request.url ?? '');
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"from":"network"}');
});
patchGlobalFetch();
const engine = await sharedEngine({ answer: ({ messages }) => `re ${messages[0]?.content}` });
await once(network.listen(0, '127.0.0.1'), 'listening');
afterAll(() => void network.close());
const address = `http://127.0.0.1:${(network.address() as AddressInfo).port}`;
const client = new OpenAI({ apiKey: 'of-the-user', baseURL: `${address}/v1` });

const ask = async (content: string, model = 'gpt-5-mini') => {
  const { choices } = await client.chat.completions.create({ model, messages: [{ role: 'user', content }] });
  return choices?.[0]?.message.content;
};

function play(rollout: TestRollout, attempts: number): Promise<AttemptRecord[]> {
  const agent = defineAgent({ name: 'ambient', scenarios: [], captureModel: 'gpt-5-mini', rollout });
  // A busy machine is no outage.
  const patient = { attemptTimeoutMs: 60_000, callTimeoutMs: 30_000 };
  return playAttempts(engine, rollout, { attempts, agent, rollout: patient } as never);
}

test('calls of twenty-four attempts at once, by three formats and streams, go to their own recorders', async () => {
  let count = 0;
  const attempts = await play(async () => {
    const me = `attempt ${count++}`;
    const body = { model: 'gpt-5-mini', max_tokens: 5, messages: [{ role: 'user', content: `${me} d` }] };
    expect(await ask(`${me} a`)).toBe(`re ${me} a`);
    await sleep(count % 5);
    const [response, stream] = await Promise.all([
      client.responses.create({ model: 'gpt-5-mini', input: `${me} b` }),
      client.chat.completions
        .stream({ model: 'gpt-5-mini', messages: [{ role: 'user', content: `${me} c` }] })
        .finalContent(),
    ]);
    expect([response.output_text, stream]).toEqual([`re ${me} b`, `re ${me} c`]);
    const request = new Request('https://api.anthropic.com/v1/messages', {
      method: 'POST',
      body: JSON.stringify(body),
    });
    expect(await (await fetch(request)).json()).toMatchObject({ content: [{ text: `re ${me} d` }] });
    return Number(me.slice('attempt '.length));
  }, 24);
  expect(attempts.map(({ failure }) => failure)).toEqual(attempts.map(() => null));
  for (const { reward, calls } of attempts)
    expect(new Set(calls.map(({ request }) => request.messages[0]?.content))).toEqual(
      new Set(['a', 'b', 'c', 'd'].map((name) => `attempt ${reward} ${name}`)),
    );
  expect(asked).toEqual([]);
});

const BODIES: Record<string, (bytes: Uint8Array<ArrayBuffer>) => NonNullable<RequestInit['body']>> = {
  'an array of bytes': (bytes) => bytes,
  'an ArrayBuffer': ({ buffer }) => buffer,
  'a Blob': (bytes) => new Blob([bytes]),
  'a stream': (bytes) => new Blob([bytes]).stream(),
};

test.each(Object.entries(BODIES))(
  'a body that is %s goes to the recorder, and of another model to the network',
  async (_, bodyOf) => {
    asked.length = 0;
    const send = (model: string) => {
      const text = JSON.stringify({ model, messages: [{ role: 'user', content: 'x' }] });
      const body = bodyOf(Uint8Array.from(Buffer.from(text)));
      return fetch(`${address}/v1/chat/completions`, { method: 'POST', body, duplex: 'half' });
    };
    const [attempt] = await play(async () => {
      await send('gpt-5-mini');
      expect(await (await send('gpt-5')).json()).toEqual({ from: 'network' });
      return 1;
    }, 1);
    expect(attempt).toMatchObject({ failure: null, calls: [{ message: { content: 're x' } }] });
    expect(asked).toEqual(['/v1/chat/completions']);
  },
);

test('other models, other addresses and calls outside of an attempt go to the network', async () => {
  asked.length = 0;
  const [attempt] = await play(async () => {
    expect(await ask('hello', 'gpt-5')).toBeUndefined();
    expect(await (await fetch(`${address}/weather`, { method: 'POST', body: 'no JSON' })).json()).toEqual({
      from: 'network',
    });
    return 1;
  }, 1);
  expect(attempt).toMatchObject({ status: 'ok', calls: [] });
  expect(await ask('outside')).toBeUndefined();
  expect(asked).toEqual(['/v1/chat/completions', '/weather', '/v1/chat/completions']);
});
