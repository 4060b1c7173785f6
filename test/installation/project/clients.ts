/**
 * The official clients against real engines: the GPU worker's own server, and `temper serve`. PLACES says where both
 * are. Calls of tools: `clients-calls.ts`. The table "Clients that were tried" of docs/internal/http-api.md names what
 * is tried here.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { APICallError, generateText, Output, streamText } from 'ai';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';

interface Place {
  readonly url: string;
  readonly apiKey: string;
  readonly model: string;
}

const places = JSON.parse(process.env['PLACES']!) as Readonly<Record<'engine' | 'serve', Place>>;
const { engine, serve } = places;
const BOARD = '1x34o6789';
const WRONG_KEY = 'another key';
/** More than is computed before a client gives it up, whatever the machine. */
const LONG = 4000;
const LONG_ENOUGH_MS = 50;

const messages = [{ role: 'user' as const, content: BOARD }];
const sampling = { temperature: 0, max_tokens: 8 };
const Move = z.object({ cell: z.enum(['1', '2', '3']) });
/** Between the parts of a JSON value a model may write blanks. */
const forMove = { temperature: 1, seed: 3, max_tokens: 512 };
const query = { type: 'object' as const, properties: { query: { type: 'string' as const } }, required: ['query'] };
function soon(): AbortSignal {
  return AbortSignal.timeout(LONG_ENOUGH_MS);
}

for (const [name, { url, apiKey, model }] of Object.entries(places)) {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey });
  const asked = { model, messages, ...sampling };

  test(`openai, ${name}: an answer, and the same one as a stream with its usage`, async () => {
    const whole = await openai.chat.completions.create(asked);
    const stream = openai.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
    const streamed = await stream.finalChatCompletion();
    assert.deepEqual(streamed.choices[0]?.message.content, whole.choices[0]?.message.content);
    assert.equal(streamed.choices[0]?.finish_reason, whole.choices[0]?.finish_reason);
    assert.deepEqual(streamed.usage, whole.usage);
    const { prompt_tokens: prompt, completion_tokens: sampled, total_tokens: total } = whole.usage!;
    assert.equal(prompt + sampled, total);
  });

  test(`openai, ${name}: several choices, with log-probabilities and what else was likely`, async () => {
    const wanted = { ...asked, temperature: 1, n: 3, logprobs: true, top_logprobs: 2 };
    const { choices } = await openai.chat.completions.create(wanted);
    assert.deepEqual(
      choices.map(({ index }) => index),
      [0, 1, 2],
    );
    for (const { logprobs } of choices) {
      assert.ok(logprobs?.content?.length);
      for (const { logprob, top_logprobs } of logprobs.content) {
        assert.ok(logprob <= 0);
        assert.equal(top_logprobs.length, 2);
      }
    }
  });

  test(`openai, ${name}: an answer of a schema is parsed`, async () => {
    const response_format = zodResponseFormat(Move, 'move');
    const { choices } = await openai.chat.completions.parse({ ...asked, ...forMove, response_format });
    assert.deepEqual(Move.parse(choices[0]?.message.parsed), choices[0]?.message.parsed);
  });

  test(`openai, ${name}: what is wrong has the client's own class of errors`, async () => {
    const other = new OpenAI({ baseURL: `${url}/v1`, apiKey: WRONG_KEY });
    const ask = (changes: object) => openai.chat.completions.create({ ...asked, ...changes });
    await assert.rejects(other.chat.completions.create(asked), OpenAI.AuthenticationError);
    await assert.rejects(ask({ model: 'gpt-5' }), OpenAI.NotFoundError);
    await assert.rejects(ask({ temprature: 1 }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.match(error.message, /temprature/);
      return true;
    });
    await assert.rejects(ask({ messages: [] }), OpenAI.BadRequestError);
  });

  test(`openai, ${name}: a call that is given up ends, and the next one is answered`, async () => {
    const long = { ...asked, max_tokens: LONG, ignore_eos: true };
    await assert.rejects(openai.chat.completions.create(long, { signal: soon() }), OpenAI.APIUserAbortError);
    const stream = openai.chat.completions.stream(long, { signal: soon() });
    await assert.rejects(stream.finalChatCompletion(), OpenAI.APIUserAbortError);
    assert.equal((await openai.chat.completions.create(asked)).choices.length, 1);
  });

  test(`openai, ${name}: the models are listed`, async () => {
    const { data } = await openai.models.list();
    assert.ok(data.some(({ id }) => id === model));
  });

  const policy = createOpenAICompatible({
    name: 'temper',
    baseURL: `${url}/v1`,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  const told = { model: policy(model), prompt: BOARD, temperature: 0, maxOutputTokens: 8 };

  test(`AI SDK, ${name}: text, and the same as a stream with its usage`, async () => {
    const whole = await generateText(told);
    const stream = streamText(told);
    assert.equal(await stream.text, whole.text);
    assert.equal(await stream.finishReason, whole.finishReason);
    assert.equal((await stream.usage).totalTokens, whole.usage.totalTokens);
    assert.ok((whole.usage.totalTokens ?? 0) > 0);
  });

  test(`AI SDK, ${name}: an output of a schema`, async () => {
    const output = Output.object({ schema: Move });
    const shaped = await generateText({ ...told, output, temperature: 1, seed: 3, maxOutputTokens: 512 });
    assert.deepEqual(Move.parse(shaped.output), shaped.output);
  });

  test(`AI SDK, ${name}: what is wrong has its status, and a call can be given up`, async () => {
    const status = (code: number) => (error: unknown) => APICallError.isInstance(error) && error.statusCode === code;
    await assert.rejects(generateText({ ...told, model: policy('gpt-5') }), status(404));
    await assert.rejects(generateText({ ...told, maxOutputTokens: 1 << 20 }), status(400));
    const given = { ...told, maxOutputTokens: LONG, abortSignal: soon() };
    await assert.rejects(generateText({ ...given, providerOptions: { temper: { ignore_eos: true } } }), {
      name: /^(?:Abort|Timeout)Error$/,
    });
  });

  const chat = (fields: object = {}) =>
    new ChatOpenAI({ model, temperature: 0, maxTokens: 8, apiKey, configuration: { baseURL: `${url}/v1` }, ...fields });

  test(`LangChain.js, ${name}: a message, and the same as a stream`, async () => {
    const whole = await chat().invoke(BOARD);
    let streamed = '';
    for await (const { text } of await chat().stream(BOARD)) streamed += text;
    assert.equal(streamed, whole.text);
    assert.ok(whole.usage_metadata!.total_tokens > 0);
  });

  test(`LangChain.js, ${name}: an output of a schema`, async () => {
    const model = chat({ temperature: 1, maxTokens: 512, modelKwargs: { seed: 3 } });
    const move = await model.withStructuredOutput(Move, { name: 'move', method: 'jsonSchema' }).invoke(BOARD);
    assert.deepEqual(Move.parse(move), move);
  });

  test(`LangChain.js, ${name}: what is wrong has its status, and a call can be given up`, async () => {
    await assert.rejects(chat({ model: 'gpt-5' }).invoke(BOARD), { status: 404 });
    const long = chat({ maxTokens: LONG, modelKwargs: { ignore_eos: true } });
    await assert.rejects(long.invoke(BOARD, { signal: soon() }));
    assert.ok((await chat().invoke(BOARD)).text);
  });
}

const openai = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: engine.apiKey });

test('openai, engine: a completion, and the same as a stream', async () => {
  const completion = { model: engine.model, prompt: BOARD, ...sampling };
  const whole = await openai.completions.create({ ...completion, logprobs: 2 });
  assert.equal(whole.choices[0]?.logprobs?.tokens?.length, whole.usage?.completion_tokens);
  let text = '';
  for await (const { choices } of await openai.completions.create({ ...completion, stream: true }))
    text += choices[0]?.text ?? '';
  assert.equal(text, whole.choices[0]?.text);
});

test('openai, engine: a model is found by its name', async () => {
  assert.equal((await openai.models.retrieve(engine.model)).id, engine.model);
  await assert.rejects(openai.models.retrieve('gpt-5'), OpenAI.NotFoundError);
});

test('openai, serve: a response, the same as a stream, and one of a schema', async () => {
  const client = new OpenAI({ baseURL: `${serve.url}/v1`, apiKey: serve.apiKey });
  const wanted = { model: serve.model, input: BOARD, temperature: 0, max_output_tokens: 8 };
  const whole = await client.responses.create(wanted);
  const streamed = await client.responses.stream(wanted).finalResponse();
  assert.equal(streamed.output_text, whole.output_text);
  assert.deepEqual(streamed.usage, whole.usage);
  const wantsLogprobs = { include: ['message.output_text.logprobs' as const], top_logprobs: 2 };
  const { output } = await client.responses.create({ ...wanted, ...wantsLogprobs });
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []));
  const logprobs = parts.flatMap((part) => (part.type === 'output_text' ? (part.logprobs ?? []) : []));
  assert.equal(logprobs.map(({ token }) => token).join(''), whole.output_text);
  assert.ok(logprobs.every(({ top_logprobs: likely }) => likely.length === 2));
  const text = { format: zodTextFormat(Move, 'move') };
  const { output_parsed: move } = await client.responses.parse({
    ...wanted,
    temperature: 1,
    max_output_tokens: 512,
    text,
  });
  assert.deepEqual(Move.parse(move), move);
});

const anthropic = new Anthropic({ baseURL: serve.url, apiKey: serve.apiKey });
const message = { model: serve.model, messages, ...sampling };

test('anthropic, serve: a message, and the same as a stream with its usage', async () => {
  const whole = await anthropic.messages.create(message);
  const streamed = await anthropic.messages.stream(message).finalMessage();
  assert.deepEqual(streamed.content, whole.content);
  assert.deepEqual(streamed.stop_reason, whole.stop_reason);
  assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens);
  const offered = [{ name: 'search', description: 'Ids of what has the word.', input_schema: query }];
  const given = { ...message, tools: offered, system: 'Play.' };
  assert.equal((await anthropic.messages.create(given)).role, 'assistant');
});

test('anthropic, serve: a message of a schema', async () => {
  const schema = { type: 'object', properties: { cell: { enum: ['1', '2', '3'] } }, required: ['cell'] };
  const shaped = { temperature: 1, max_tokens: 512 };
  const format = { type: 'json_schema' as const, schema: { ...schema, additionalProperties: false } };
  const { content } = await anthropic.messages.create({ ...message, ...shaped, output_config: { format } });
  assert.ok(content[0]?.type === 'text');
  Move.parse(JSON.parse(content[0].text));
});

test('anthropic, serve: what is wrong has its own class of errors, and a call can be given up', async () => {
  const other = new Anthropic({ baseURL: serve.url, apiKey: WRONG_KEY });
  await assert.rejects(other.messages.create(message), Anthropic.AuthenticationError);
  await assert.rejects(anthropic.messages.create({ ...message, model: 'claude' }), Anthropic.NotFoundError);
  const unknown = { ...message, temprature: 1 } as Anthropic.MessageCreateParamsNonStreaming;
  await assert.rejects(anthropic.messages.create(unknown), Anthropic.BadRequestError);
  const stream = anthropic.messages.stream(message);
  stream.abort();
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
  assert.equal((await anthropic.messages.create(message)).role, 'assistant');
});
