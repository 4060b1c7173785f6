/** HTTP server of `temper serve` with a scripted engine: access, requests, and refusals. */
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import OpenAI, { NotFoundError } from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectEngine, type EngineConnection } from '../../../play/connections/engine-connection.ts';
import type { KeyedServer } from '../../../play/transports/keyed-server.ts';
import { servePolicy } from '../../../workers/serving/serve-policy.ts';
import { until } from '../../until.ts';
import { askAt } from './asking.ts';
import { fakeAdapterSha256, startFakeEngine, type FakeEngine } from '../../fake-engine.ts';

const KEY = 'a key of this test';
const ASKED = { model: 'demo', messages: [{ role: 'user' as const, content: 'n?' }] };

let engine: FakeEngine;
let connection: EngineConnection | null;
let serving: KeyedServer;
let client: OpenAI;

beforeEach(async () => {
  engine = await startFakeEngine({
    answer: ({ temperature, seed }) => (temperature === 0 ? 'greedy' : `drawn by ${seed}`),
  });
  connection = connectEngine({ url: engine.url, key: engine.key });
  const policy = {
    name: 'demo@2',
    adapterSha256: fakeAdapterSha256('demo@2')!,
    names: ['demo@2', 'demo', 'demo@best'],
    rollout: { temperature: 0.75, maxTokens: 33 },
  };
  serving = await servePolicy({
    host: '127.0.0.1',
    port: 0,
    hosts: ['models.internal'],
    key: KEY,
    models: policy.names,
    policy: () => policy,
    engine: () => ({ connection: () => connection }),
  });
  client = new OpenAI({ baseURL: `http://127.0.0.1:${serving.port}/v1`, apiKey: KEY, maxRetries: 0 });
});

afterEach(async () => {
  await serving.close();
  await connection?.close();
  await engine.close();
});

const ask = (path: string, headers?: Record<string, string>, body?: string | Buffer) =>
  askAt(serving.port, path, headers, body);
const KNOWN = { authorization: `Bearer ${KEY}` };
const CHAT = '/v1/chat/completions';
const asked = (more: object = {}) => JSON.stringify({ ...ASKED, ...more });

describe('who is answered', () => {
  test('who sends the key, as OpenAI’s clients do or as Anthropic’s', async () => {
    for (const headers of [KNOWN, { 'x-api-key': KEY }])
      expect(await ask(CHAT, headers, asked())).toMatchObject({ status: 200 });
    expect(await ask('/health')).toMatchObject({ status: 200 });
  });

  test.each([{}, { authorization: 'Bearer wrong' }, { authorization: KEY }, { 'x-api-key': '' }])(
    'not %o',
    async (headers) => {
      const { status, error } = await ask(CHAT, headers, asked());
      expect([status, error.code]).toEqual([401, 'invalid_api_key']);
      expect(await ask('/v1/models', headers)).toMatchObject({ status: 401 });
      expect(engine.received).toBe(0);
    },
  );
});

describe('what is asked of the engine', () => {
  const received = () => engine.executed.at(-1)!.request;

  test('gets the run’s temperature and token limit, where the client says none', async () => {
    const { model, choices } = await client.chat.completions.create(ASKED);
    expect([model, choices[0]!.message.content]).toEqual(['demo@2', expect.stringContaining('drawn')]);
    expect(received()).toEqual({ ...ASKED, model: 'demo@2', temperature: 0.75, max_tokens: 33 });
  });

  test('is greedy, seeded and limited, where the client says so', async () => {
    const more = { temperature: 0, seed: 7, max_completion_tokens: 5, return_token_ids: true };
    const completion = await client.chat.completions.create({ ...ASKED, ...more });
    expect(completion.choices[0]).toMatchObject({ message: { content: 'greedy' }, token_ids: expect.any(Array) });
    expect(received()).toMatchObject({ temperature: 0, seed: 7, max_tokens: 5, return_token_ids: true });
  });

  test.each(['demo', 'demo@2', 'demo@best'])('is the policy, under the name %s', async (model) => {
    await client.chat.completions.create({ ...ASKED, model });
    expect(received().model).toBe('demo@2');
  });

  test('is the policy where a client names no model', async () => {
    expect((await client.responses.create({ input: 'n?' })).model).toBe('demo@2');
    expect(await ask(CHAT, KNOWN, asked({ model: undefined }))).toMatchObject({ status: 200 });
  });

  test('the same by a stream, told in pieces', async () => {
    const stream = client.chat.completions.stream({
      ...ASKED,
      temperature: 0,
      stream_options: { include_usage: true },
    });
    const completion = await stream.finalChatCompletion();
    expect(completion.choices[0]!.message.content).toBe('greedy');
    expect(completion.usage?.completion_tokens).toBe(2);
    expect(received()).toEqual({ ...ASKED, model: 'demo@2', temperature: 0, max_tokens: 33 });
  });

  test('log-probabilities, where the client wants them', async () => {
    const { choices } = await client.chat.completions.create({ ...ASKED, logprobs: true });
    expect(choices[0]!.logprobs?.content?.length).toBeGreaterThan(0);
  });

  test('by the deadline that the client sets', async () => {
    await ask(CHAT, { ...KNOWN, 'x-temper-deadline-ms': '4321' }, asked());
    expect(engine.executed.at(-1)!.headers['x-temper-deadline-ms']).toBe('4321');
    await ask(CHAT, KNOWN, asked());
    expect(engine.executed.at(-1)!.headers['x-temper-deadline-ms']).toBeUndefined();
  });

  test('models are listed', async () => {
    const { data } = await client.models.list();
    expect(data.map(({ id }) => id)).toEqual(['demo@2', 'demo', 'demo@best']);
    expect(await client.models.retrieve('demo@best')).toEqual(data[2]);
    await expect(client.models.retrieve('gpt-5')).rejects.toBeInstanceOf(NotFoundError);
  });
});

describe('in other dialects', () => {
  const received = () => engine.executed.at(-1)!.request;
  const MESSAGES = '/v1/messages';
  const message = (more: object = {}) => JSON.stringify({ ...ASKED, max_tokens: 4096, temperature: 0, ...more });

  test('responses: the same prompt, and the conversation goes on by the id of an answer', async () => {
    const first = await client.responses.create({ model: 'demo', input: 'n?', temperature: 0 });
    expect(first.output_text).toBe('greedy');
    expect(received()).toEqual({ ...ASKED, model: 'demo@2', temperature: 0, max_tokens: 33 });
    await client.responses.create({ model: 'demo', input: 'and m?', previous_response_id: first.id, temperature: 0 });
    expect(received().messages.map(({ content }) => content)).toEqual(['n?', 'greedy', 'and m?']);
    const stream = client.responses.stream({ model: 'demo', input: 'n?', temperature: 0 });
    expect((await stream.finalResponse()).output_text).toBe('greedy');
  });

  test('responses: an answer is kept, until it is deleted or where its client wants it stored', async () => {
    const wanted = { model: 'demo', input: 'n?', temperature: 0, metadata: { of: 'a test' } };
    const { output_text, ...told } = await client.responses.create(wanted);
    const { output_text: again, ...kept } = await client.responses.retrieve(told.id);
    expect([again, kept]).toEqual([output_text, told]);
    await expect(client.responses.retrieve(told.id, { stream: true })).rejects.toMatchObject({ status: 400 });
    await client.responses.delete(told.id);
    const gone = `Response with id "${told.id}" not found.`;
    await expect(client.responses.retrieve(told.id)).rejects.toThrow(gone);
    await expect(client.responses.delete(told.id)).rejects.toBeInstanceOf(NotFoundError);
    const reference = { type: 'item_reference' as const, id: told.output[0]!.id! };
    await expect(client.responses.create({ model: 'demo', input: [reference] })).rejects.toMatchObject({ status: 400 });
    await client.responses.create({ ...wanted, store: false });
    await expect(client.responses.retrieve(told.id)).rejects.toThrow(gone);
  });

  test('messages: the same prompt, and a token limit that nobody chose is the run’s', async () => {
    const { body } = await ask(MESSAGES, { 'x-api-key': KEY }, message());
    expect(JSON.parse(body)).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'greedy' }] });
    expect(received()).toEqual({ ...ASKED, model: 'demo@2', temperature: 0, max_tokens: 33 });
    const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
    const url = `http://127.0.0.1:${serving.port}${MESSAGES}`;
    const streamed = await fetch(url, { method: 'POST', headers, body: message({ stream: true }) });
    expect(streamed.headers.get('content-type')).toContain('text/event-stream');
    expect(await streamed.text()).toMatch(/event: content_block_delta\n.*"greedy"[\s\S]*event: message_stop/);
  });

  test('a form of the answer is asked for as chats have it', async () => {
    const format = { type: 'json_schema' as const, schema: { type: 'object' } };
    await ask(MESSAGES, { 'x-api-key': KEY }, message({ output_config: { format } }));
    const named = (name: string) => ({ type: 'json_schema', json_schema: { name, schema: format.schema } });
    expect(received()).toMatchObject({ response_format: named('answer') });
    await client.responses.create({ model: 'demo', input: 'n?', text: { format: { ...format, name: 'key' } } });
    expect(received()).toMatchObject({ response_format: named('key') });
  });

  test('errors are those of the dialect', async () => {
    const wrongKey = await ask(MESSAGES, { 'x-api-key': 'wrong' }, message());
    expect(wrongKey).toMatchObject({ status: 401 });
    expect(JSON.parse(wrongKey.body)).toMatchObject({
      type: 'error',
      error: { message: expect.stringContaining('x-api-key') },
    });
    const unknown = await ask(MESSAGES, { 'x-api-key': KEY }, message({ model: 'claude' }));
    expect(unknown).toMatchObject({ status: 404, error: { message: expect.stringContaining('got "claude"') } });
    expect(JSON.parse(unknown.body)).toMatchObject({ type: 'error' });
    engine.failNext({
      status: 400,
      body: JSON.stringify({ error: { message: 'top_k must be -1', type: 'BadConfig' } }),
    });
    const refused = await ask(MESSAGES, { 'x-api-key': KEY }, message());
    expect(refused).toMatchObject({ status: 400, error: { message: 'top_k must be -1' } });
  });
});

describe('what is refused', () => {
  test('another model, with the names of this one', async () => {
    const { status, error } = await ask(CHAT, KNOWN, asked({ model: 'gpt-5' }));
    expect([status, error.code]).toEqual([404, 'model_not_found']);
    expect(error.message).toContain('model must be demo@2 or demo or demo@best, got "gpt-5"');
    expect(engine.received).toBe(0);
  });

  test.each([
    [400, {}, 'top_p must be 1'],
    [429, { 'retry-after': '1' }, 'too many requests'],
    [503, { 'retry-after': '2' }, 'still loading'],
  ])('what the engine refuses with %i, in its words, with its status', async (status, headers, message) => {
    const body = JSON.stringify({ error: { message, type: 'EngineFailed', code: 'scripted' } });
    engine.failNext({ status, headers, body });
    const answer = await ask(CHAT, KNOWN, asked());
    expect(answer).toMatchObject({ status, error: { message, code: 'scripted' } });
    expect(answer.headers['retry-after']).toBe(new Headers(headers).get('retry-after') ?? undefined);
  });

  test('a body that is none, and content that is no text', async () => {
    expect(await ask(CHAT, KNOWN, '{')).toMatchObject({ status: 400, error: { type: 'BadConfig' } });
    const image = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }];
    expect(await ask(CHAT, KNOWN, asked({ messages: image }))).toMatchObject({ status: 400 });
    expect(engine.received).toBe(0);
  });

  test.each([
    [CHAT, { messages: [null] }, 'messages'],
    [CHAT, { messages: [{ role: 'assistant', tool_calls: [{ function: null }] }] }, 'tool_calls'],
    [CHAT, { tools: [{ type: 'function', function: null }] }, 'tools'],
    ['/v1/responses', { input: 'n?', constructor: 1 }, 'constructor'],
    ['/v1/responses', { input: 'n?', include: 5 }, 'include'],
    ['/v1/messages', { max_tokens: 5, valueOf: 1 }, 'valueOf'],
    ['/v1/messages', { max_tokens: 5, tool_choice: { type: 'constructor' } }, 'tool_choice'],
  ])('to %s what has not the shape that it must have: %j', async (path, more, name) => {
    const { messages, ...rest } = ASKED;
    const body = JSON.stringify({ ...(path === '/v1/responses' ? rest : { messages, ...rest }), ...more });
    expect(await ask(path, KNOWN, body)).toMatchObject({
      status: 400,
      error: { message: expect.stringContaining(name) },
    });
    expect(engine.received).toBe(0);
  });

  test('an address that is none, and bytes that are no text', async () => {
    for (const path of ['//', 'http://[']) expect(await ask(path, KNOWN, asked())).toMatchObject({ status: 404 });
    const bytes = Buffer.from(asked().replace('n?', '\xff\xfe'), 'latin1');
    expect(await ask(CHAT, KNOWN, bytes)).toMatchObject({
      status: 400,
      error: { message: expect.stringContaining('UTF-8') },
    });
    expect(engine.received).toBe(0);
  });

  test('an answer of other weights', async () => {
    await engine.close();
    const other = await startFakeEngine({ adapterSha256: () => 'f'.repeat(64) });
    connection = connectEngine({ url: other.url, key: other.key });
    const { status, error } = await ask(CHAT, KNOWN, asked());
    expect([status, error.type]).toEqual([400, 'PolicyMismatch']);
    await other.close();
  });

  test('an engine that starts or is gone: come again', async () => {
    await engine.stop();
    expect(await ask(CHAT, KNOWN, asked())).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    connection = null;
    expect(await ask(CHAT, KNOWN, asked())).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
  });
});

test('a client that goes away is not answered any more, and the next one is', async () => {
  engine.failNext({ hang: true });
  const controller = new AbortController();
  const asking = client.chat.completions.create(ASKED, { signal: controller.signal });
  await until('it is asked', () => engine.received === 1);
  controller.abort();
  await expect(asking).rejects.toThrow('aborted');
  expect((await client.chat.completions.create({ ...ASKED, temperature: 0 })).choices).toHaveLength(1);
});

test('clients that cut a stream off at any place leave the server as it was', async () => {
  await engine.close();
  engine = await startFakeEngine({ answer: () => 'long '.repeat(50_000) });
  connection = connectEngine({ url: engine.url, key: engine.key });
  const headers = { ...KNOWN, 'content-type': 'application/json' };
  for (let read = 0; read < 8; read++) {
    const asking = request({ port: serving.port, path: CHAT, method: 'POST', headers, agent: false });
    asking.on('error', () => undefined).end(asked({ stream: true }));
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    const cut = new Promise((resolve) => response.on('error', () => undefined).on('close', resolve));
    for (let chunk = 0; chunk < read; chunk++) response.read();
    asking.destroy();
    await cut;
  }
  expect(await ask('/health')).toMatchObject({ status: 200 });
});

test('what the model called is told to it in its own words', async () => {
  await engine.close();
  const call = (text: string) => ({
    id: 'call-1',
    type: 'function' as const,
    function: { name: 'read', arguments: text },
  });
  const own = '{"id":  7}';
  engine = await startFakeEngine({ answer: () => ({ content: '', toolCalls: [call(own)] }) });
  connection = connectEngine({ url: engine.url, key: engine.key });
  const tools = [
    { type: 'function' as const, function: { name: 'read', parameters: { type: 'object', properties: {} } } },
  ];
  await client.chat.completions.create({ ...ASKED, tools });
  const heard = { role: 'assistant' as const, content: null, tool_calls: [call('{"id":7}')] };
  const result = { role: 'tool' as const, tool_call_id: 'call-1', content: 'a mail' };
  await client.chat.completions.create({ ...ASKED, tools, messages: [...ASKED.messages, heard, result] });
  expect(engine.executed.at(-1)!.request.messages[1]).toMatchObject({ tool_calls: [call(own)] });
});
