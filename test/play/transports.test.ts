/** The ways in which a call comes to the recorder: all of them are recorded as the same bytes. */
import { describe, expect, test } from 'vitest';

import { sha256Hex } from '../../core/text/hashes.ts';
import { label } from '../../sdk/agent/label.ts';
import type { RolloutContext } from '../../play/agent.ts';
import type { Recorder } from '../../play/recorder/recorder.ts';
import { createFetch } from '../../play/transports/fetch.ts';
import { markOf, memoryJournal, MODEL, playOne, skippingClock, type PlayOptions, type TestRollout } from './play.ts';
import { sharedEngine } from './shared-engine.ts';

const engine = await sharedEngine();

const messages = [{ role: 'user' as const, content: 'Where is the key?' }];
const body = { model: MODEL, messages, max_tokens: 3 };

/** An attempt whose agent has its recorder at hand. */
function playWith(
  rollout: (recorder: Recorder, context: RolloutContext) => ReturnType<TestRollout>,
  options: PlayOptions = {},
) {
  let recorder: Recorder | null = null;
  return playOne(engine, (context) => rollout(recorder!, context), {
    ...options,
    onRecorder: (_, created) => void (recorder = created),
  });
}

test('a call by the core, by fetch and by the official client is answered and recorded alike', async () => {
  interface Answered {
    choices: { message: { content?: unknown } }[];
  }
  const init = { method: 'POST', body: JSON.stringify(body), ...label('first') };
  const ways: ((context: RolloutContext, recorder: Recorder) => Promise<Answered>)[] = [
    (_, recorder) => recorder.call(body, { label: 'first' }),
    async (_, recorder) => {
      const response = await createFetch(recorder)('http://engine/v1/chat/completions', init);
      return (await response.json()) as Answered;
    },
    ({ openai }) => openai.chat.completions.create(body, label('first')),
  ];
  const contents: unknown[] = [];
  const journals = ways.map(() => memoryJournal());
  const attempts = ways.map((ask, index) =>
    playWith(
      async (recorder, context) => {
        contents.push((await ask(context, recorder)).choices[0]?.message.content);
        return 1;
      },
      { journal: journals[index]! },
    ),
  );
  const [byCall, ...others] = await Promise.all(attempts);
  expect(others).toEqual([byCall, byCall]);
  expect(byCall?.calls).toMatchObject([{ label: 'first', message: { content: contents[0] } }]);
  expect(new Set(contents).size).toBe(1);
  const bytes = journals.map(({ segments }) => sha256Hex(Buffer.concat(segments)));
  expect(new Set(bytes).size).toBe(1);
});

test('what the core refuses ends the attempt, whichever way it came', async () => {
  const seeded = { ...body, seed: 3 };
  const swallowed = async (asking: Promise<unknown>) => (await asking.catch(() => null), 1);
  const byCall = await markOf(playWith((recorder) => swallowed(recorder.call(seeded))));
  const byFetch = await markOf(
    playWith(async (recorder) => {
      const ask = createFetch(recorder);
      const response = await ask('http://engine/v1/chat/completions', { body: JSON.stringify(seeded) });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { type: 'BadConfig', message: byCall.message } });
      return 1;
    }),
  );
  expect(byCall).toMatchObject({ type: 'BadConfig', message: expect.stringContaining('seed') as string });
  expect(byFetch.message).toBe(byCall.message);
  expect(engine.executed).toEqual([]);
});

test('a body that is no JSON ends the attempt as well, though it never comes to the core', async () => {
  const ask = (recorder: Recorder) => createFetch(recorder)('http://engine/v1/chat/completions', { body: '{' });
  const mark = await markOf(playWith(async (recorder) => (await ask(recorder)).status));
  expect(mark.message).toMatch(/a request must be a JSON object, got \{/);
});

test('a prompt that outgrew the model is the agent’s to handle, whichever way it came', async () => {
  const error = { message: 'too long', type: 'BadConfig', code: 'context_length_exceeded', param: null };
  engine.failNext({ status: 400, body: JSON.stringify({ error }) }, { status: 400, body: JSON.stringify({ error }) });
  const attempt = await playWith(async (recorder) => {
    await expect(recorder.call(body)).rejects.toMatchObject({ name: 'RequestRefused', status: 400, error });
    const response = await createFetch(recorder)('http://engine/v1/chat/completions', { body: JSON.stringify(body) });
    expect(await response.json()).toEqual({ error });
    return 0.5;
  });
  expect(attempt).toMatchObject({ status: 'ok', reward: 0.5, truncated: true, calls: [] });
});

describe('context.fetch', () => {
  const text = JSON.stringify(body);
  const url = (baseURL: string) => `${baseURL}/chat/completions`;
  const shapes: [string, (baseURL: string) => Parameters<typeof globalThis.fetch>][] = [
    ['a text', (baseURL) => [url(baseURL), { method: 'POST', body: text }]],
    ['bytes and a URL', (baseURL) => [new URL(url(baseURL)), { method: 'POST', body: new TextEncoder().encode(text) }]],
    ['a Request', (baseURL) => [new Request(url(baseURL), { method: 'POST', body: text })]],
    ['an address without /v1', (baseURL) => [url(baseURL.replace('/v1', '')), { method: 'POST', body: text }]],
    ['an address with /v1 twice', (baseURL) => [url(`${baseURL}/v1`), { method: 'POST', body: text }]],
  ];

  test.each(shapes)('answers %s as the global fetch would', async (_, shape) => {
    const attempt = await playOne(engine, async ({ fetch, baseURL, apiKey }) => {
      const response = await fetch(...shape(baseURL));
      expect(response).toBeInstanceOf(Response);
      expect(response.headers.get('content-type')).toBe('application/json');
      const read = await response.clone().text();
      expect(JSON.stringify(await response.json())).toBe(read);
      expect(JSON.parse(read)).toMatchObject({ id: expect.stringMatching(/^chatcmpl-[0-9a-f]{24}-0$/) as string });
      expect(apiKey).not.toBe('');
      return 1;
    });
    expect(attempt).toMatchObject({ failure: null, status: 'ok', calls: [{ request: { max_tokens: 3 } }] });
  });

  test('refuses other addresses, and says what to use instead', async () => {
    const mark = await markOf(
      playOne(engine, async ({ fetch }) => {
        const response = await fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', body: text });
        expect([response.status, response.headers.get('x-should-retry')]).toEqual([400, 'false']);
        return 1;
      }),
    );
    expect(mark).toMatchObject({ type: 'BadConfig' });
    expect(mark.message).toMatch(
      /below context.baseURL .*, got a request to https:\/\/api.openai.com\/v1\/chat.*global fetch/,
    );
  });

  test('answers a call that outlived its attempt with a status that no client retries', async () => {
    engine.failWhen(() => ({ status: 503 }));
    const asking: Promise<Response>[] = [];
    const mark = await markOf(
      playOne(
        engine,
        async ({ fetch, baseURL }) => {
          asking.push(fetch(url(baseURL), { method: 'POST', body: text }));
          await asking[0];
          return 1;
        },
        { clock: skippingClock() },
      ),
    );
    expect(mark.type).toBe('EngineFailed');
    expect(await asking[0]).toMatchObject({ status: 400 });
  });
});
