/** Chat completions as streams, through the official client: the finished answer, told in pieces. */
import { beforeEach, describe, expect, test } from 'vitest';
import type OpenAI from 'openai';

import { answerRequest, type ModelReply } from '../../../play/dialects/answer-request.ts';
import type { Completion } from '../../../play/connections/completion.ts';
import type { RolloutContext } from '../../../play/agent.ts';
import { until } from '../../until.ts';
import { markOf, memoryJournal, MODEL, playOne, skippingClock } from '../play.ts';
import { sharedEngine, temporaryEngine } from '../shared-engine.ts';

const look = { name: 'look', arguments: '{"at": "the map"}' };
const calls = [1, 2].map((id) => ({ id: `call-${id}`, type: 'function', function: look }));
const tools = [{ type: 'function' as const, function: { name: 'look', parameters: {} } }];

let thinks = false;
const engine = await sharedEngine({
  answer: ({ tools: offered, seed }) =>
    offered === undefined
      ? { content: `answer ${seed % 10}`, ...(thinks ? { thoughts: 'Hm.' } : {}) }
      : { content: 'Let me see.', toolCalls: calls, malformedToolCalls: 0 },
});
beforeEach(() => {
  thinks = false;
});

const messages = [{ role: 'user' as const, content: 'Where is the key?' }];
type Chunk = OpenAI.ChatCompletionChunk;

async function stream({ openai, model }: Pick<RolloutContext, 'openai' | 'model'>, more: object = {}) {
  const chunks: Chunk[] = [];
  for await (const chunk of await openai.chat.completions.create({ model, messages, ...more, stream: true }))
    chunks.push(chunk);
  return chunks;
}

test('a streamed call is recorded like the same call without a stream', async () => {
  const whole = await playOne(engine, async ({ openai, model }) => {
    await openai.chat.completions.create({ model, messages });
    return 1;
  });
  const streamed = await playOne(engine, async (context) => {
    await stream(context, { stream_options: { include_usage: true } });
    return 1;
  });
  expect(streamed).toEqual(whole);
});

test('pieces say role, content, end and, where it was asked for, usage', async () => {
  await playOne(engine, async (context) => {
    const plain = await stream(context);
    expect(plain.map(({ choices }) => choices[0]?.delta)).toEqual([
      { role: 'assistant', content: '', refusal: null },
      { content: expect.stringMatching(/^answer \d$/) as string },
      {},
    ]);
    expect(plain.at(-1)?.choices[0]?.finish_reason).toBe('stop');
    expect(plain.every((chunk) => chunk.object === 'chat.completion.chunk' && !('usage' in chunk))).toBe(true);
    const counted = await stream(context, { stream_options: { include_usage: true } });
    expect(counted.map(({ usage }) => usage?.completion_tokens ?? null)).toEqual([null, null, null, 2]);
    expect(counted.at(-1)?.choices).toEqual([]);
    return 1;
  });
});

test('thoughts are a piece of their own, before the answer', async () => {
  thinks = true;
  await playOne(engine, async (context) => {
    const [, thoughts, answer] = (await stream(context)).map(({ choices }) => choices[0]?.delta);
    expect(thoughts).toEqual({ reasoning_content: 'Hm.' });
    expect(answer?.content).toMatch(/^answer/);
    return 1;
  });
});

test('a repetition streams the same bytes from the journal', async () => {
  const journal = memoryJournal();
  const told: string[] = [];
  const play = () =>
    playOne(
      engine,
      async (context) => {
        const body = JSON.stringify({ model: context.model, messages, stream: true });
        const response = await context.fetch(`${context.baseURL}/chat/completions`, { method: 'POST', body });
        expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
        told.push(await response.text());
        return 1;
      },
      { journal },
    );
  expect(await play()).toEqual(await play());
  expect(told[1]).toBe(told[0]);
  expect(told[0]).toMatch(/\ndata: \[DONE\]\n\n$/);
  expect(engine.executed).toHaveLength(1);
});

test('the client’s stream helper puts tool calls, choices of n and log-probabilities together', async () => {
  await playOne(engine, async ({ openai, model }) => {
    const events: string[] = [];
    const runner = openai.chat.completions.stream({ model, messages, tools, logprobs: true });
    runner.on('tool_calls.function.arguments.delta', ({ index, arguments_delta: delta }) =>
      events.push(`${index} ${delta}`),
    );
    runner.on('tool_calls.function.arguments.done', ({ name, arguments: text }) => events.push(`${name} ${text}`));
    const { id, choices } = await runner.finalChatCompletion();
    const whole = await openai.chat.completions.create({ model, messages, tools, logprobs: true });
    expect(events).toEqual([0, 1].flatMap((index) => [`${index} ${look.arguments}`, `look ${look.arguments}`]));
    expect(choices[0]?.message).toMatchObject({ content: 'Let me see.', tool_calls: calls });
    expect(choices[0]?.logprobs?.content).toHaveLength(whole.choices[0]!.logprobs!.content!.length);
    expect(id).toMatch(/^chatcmpl-[0-9a-f]{24}-0$/);
    const many = await openai.chat.completions.stream({ model, messages, n: 2 }).finalChatCompletion();
    expect(many.choices.map(({ index }) => index)).toEqual([0, 1]);
    return 1;
  });
});

test('rewardTurn knows a streamed answer by its id', async () => {
  const attempt = await playOne(engine, async ({ openai, model, rewardTurn }) => {
    const completion = await openai.chat.completions.stream({ model, messages }).finalChatCompletion();
    rewardTurn(completion, 0.5);
    rewardTurn(completion.id, 0.25);
    const choices = await openai.chat.completions.create({ model, messages, n: 2 });
    expect(() => rewardTurn(choices.id, 1)).toThrow('must be given a completion of one choice');
    return 1;
  });
  expect(attempt.reward).toBe(1.75);
  expect(attempt.calls.flatMap(({ reward }) => reward ?? [])).toEqual([0.75]);
});

test('a refused request has a status, though it asked for a stream', async () => {
  const mark = await markOf(
    playOne(engine, async (context) => {
      await expect(stream(context, { seed: 3 })).rejects.toMatchObject({ status: 400, type: 'BadConfig' });
      return 1;
    }),
  );
  expect(mark.message).toContain('seed');
});

test('a stream that its reader gives up is a call that is given up, and asked again it is the same call', async () => {
  const hanging = await temporaryEngine();
  hanging.failNext({ hang: true });
  const attempt = await playOne(hanging, async ({ openai, model }) => {
    const giveUp = new AbortController();
    const asking = openai.chat.completions.create({ model, messages, stream: true }, { signal: giveUp.signal });
    void until('it hangs', () => hanging.received === 1).then(() => giveUp.abort());
    await expect(asking).rejects.toThrow('Request was aborted');
    const headers = { 'x-stainless-retry-count': '1' };
    await openai.chat.completions.create({ model, messages }, { headers });
    await openai.chat.completions.create({ model, messages }, { headers });
    return 1;
  });
  expect(attempt.calls.map(({ occurrence }) => occurrence)).toEqual([0]);
  expect(hanging.executed).toHaveLength(1);
});

test('a client that asks again before it has given up is answered once', async () => {
  const attempt = await playOne(engine, async ({ openai, model }) => {
    const ask = (count: number) =>
      openai.chat.completions.create({ model, messages }, { headers: { 'x-stainless-retry-count': String(count) } });
    const [first, second] = await Promise.all([ask(0), ask(1)]);
    expect(second).toEqual(first);
    return 1;
  });
  expect(attempt.calls).toHaveLength(1);
});

test('an outage of the engine does not show in a stream', async () => {
  engine.failNext({ status: 503 }, { destroy: true }, { cut: 'chunked' });
  const attempt = await playOne(
    engine,
    async (context) => {
      expect((await stream(context)).at(-1)?.choices[0]?.finish_reason).toBe('stop');
      return 1;
    },
    { clock: skippingClock() },
  );
  expect(attempt).toMatchObject({ status: 'ok', calls: [{}] });
});

test('a hosted model is asked without a stream', async () => {
  await playOne(engine, async (context) => (await stream(context, { stream_options: {} })).length, { mode: 'text' });
  const [{ request }] = engine.executed as [(typeof engine.executed)[0]];
  expect(Object.keys(request).toSorted()).toEqual(['messages', 'model']);
});

describe('while the engine does not answer', () => {
  const request = { path: '/v1/chat/completions', headers: new Headers(), signal: null };
  const body = JSON.stringify({ model: MODEL, messages, stream: true });
  const completion: Completion = {
    id: 'chatcmpl-1',
    choices: [{ message: { role: 'assistant', content: 'late' }, finish_reason: 'stop' }],
  };

  /** A recorder's stand-in, which answers when it is told to. */
  function answerLater() {
    let resolve!: (completion: Completion) => void;
    let reject!: (error: Error) => void;
    const answering = new Promise<Completion>((...settle) => void ([resolve, reject] = settle));
    const signals: (AbortSignal | null | undefined)[] = [];
    const call = (_asked: object, { signal }: { signal?: AbortSignal | null }) => {
      signals.push(signal);
      return answering;
    };
    const answerer = { call, refuse: async (error: unknown) => error };
    const replying = answerRequest({ ...request, body }, answerer, { memory: new Map(), keepAliveMs: 1 });
    return { resolve, reject, signals, events: replying.then(eventsOf) };
  }

  function eventsOf(reply: ModelReply): AsyncIterator<string> {
    if ('events' in reply) return reply.events[Symbol.asyncIterator]();
    throw new Error(JSON.stringify(reply.json));
  }

  test('comments keep the connection alive until the answer comes', async () => {
    const { events, resolve } = answerLater();
    const iterator = await events;
    for (let comment = 0; comment < 3; comment++)
      expect(await iterator.next()).toEqual({ done: false, value: ': waiting\n\n' });
    resolve(completion);
    const told: string[] = [];
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) told.push(next.value);
    expect(told.filter((event) => !event.startsWith(':')).join('')).toContain('"content":"late"');
    expect(told.at(-1)).toBe('data: [DONE]\n\n');
  });

  test('who stops reading gives the call up', async () => {
    const { events, signals, reject } = answerLater();
    const iterator = await events;
    await iterator.next();
    expect(signals[0]?.aborted).toBe(false);
    const reading = iterator.next().catch(() => 'aborted');
    const stopped = iterator.return?.();
    expect(signals[0]?.aborted).toBe(true);
    reject(new Error('aborted'));
    await Promise.all([reading, stopped]);
  });
});
