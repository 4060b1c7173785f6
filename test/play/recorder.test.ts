import { describe, expect, test } from 'vitest';

import { label } from '../../sdk/agent/label.ts';
import { fakeAdapterSha256 } from '../fake-engine.ts';
import { markOf, memoryJournal, MODEL, playAttempts, playOne, say, type TestRollout } from './play.ts';
import { sharedEngine, temporaryEngine } from './shared-engine.ts';

const engine = await sharedEngine();

const askOnce: TestRollout = async (context) => Number(await say(context, 'hello'));

test('a call goes out as the policy with the run’s seed, temperature and limits, and comes back into the trajectory', async () => {
  const attempt = await playOne(engine, askOnce);
  const [call] = attempt.calls;
  expect(engine.executed[0]?.request).toMatchObject({
    model: MODEL,
    messages: [{ role: 'user', content: 'hello' }],
    temperature: 1,
    max_tokens: 8,
    logprobs: true,
    return_token_ids: true,
  });
  expect(engine.executed[0]?.call).toBe(`a0/${call?.key}/0`);
  expect(engine.executed[0]?.headers['x-temper-deadline-ms']).toBe('10000');
  expect(call).toMatchObject({
    occurrence: 0,
    label: null,
    request: { messages: [{ role: 'user', content: 'hello' }], temperature: 1, max_tokens: 8 },
    message: { role: 'assistant', content: String(attempt.reward) },
    finishReason: 'stop',
    adapterSha256: fakeAdapterSha256(MODEL),
  });
  expect(call?.promptTokenIds.length).toBeGreaterThan(0);
  expect(call?.tokenIds).toHaveLength(2);
  expect(call?.logprobs).toHaveLength(2);
  expect(JSON.stringify(call?.request)).not.toContain('seed');
});

test('attempts draw differently, and a second run of the same plan draws the same, byte for byte', async () => {
  const first = await playAttempts(engine, askOnce, { attempts: 16 });
  const second = await playAttempts(engine, askOnce, { attempts: 16, attemptKey: (attempt) => `other${attempt}` });
  expect(new Set(first.map(({ reward }) => reward)).size).toBeGreaterThan(3);
  expect(JSON.stringify(second)).toBe(JSON.stringify(first));
});

test('calls stand in the order of prompt length, key and occurrence, whatever order they were answered in', async () => {
  const parallel =
    (order: string[]): TestRollout =>
    async (context) => {
      await Promise.all(order.map((content) => say(context, content)));
      return 0;
    };
  const texts = ['aaa', 'b', 'cc', 'dd', 'dd'];
  const forwards = await playOne(engine, parallel(texts));
  const backwards = await playOne(engine, parallel(texts.toReversed()));
  expect(JSON.stringify(backwards)).toBe(JSON.stringify(forwards));
  const lengths = forwards.calls.map(({ promptTokenIds }) => promptTokenIds.length);
  expect(lengths).toEqual(lengths.toSorted((a, b) => a - b));
  expect(forwards.calls.map(({ occurrence }) => occurrence).filter((occurrence) => occurrence === 1)).toHaveLength(1);
});

test('labels tell identical parallel calls apart', async () => {
  const attempt = await playOne(engine, async ({ openai, model }) => {
    const body = { model, messages: [{ role: 'user' as const, content: 'x' }] };
    await Promise.all(['left', 'right'].map((name) => openai.chat.completions.create(body, label(name))));
    return 0;
  });
  expect(new Set(attempt.calls.map((call) => call.label))).toEqual(new Set(['left', 'right']));
  expect(attempt.calls.map(({ occurrence }) => occurrence)).toEqual([0, 0]);
});

test('the agent does not see token ids, and sees log-probabilities only where it asked for them', async () => {
  const attempt = await playOne(engine, async ({ openai, model }) => {
    const messages = [{ role: 'user' as const, content: 'x' }];
    const plain = await openai.chat.completions.create({ model, messages });
    const asked = await openai.chat.completions.create({ model, messages, logprobs: true });
    expect(plain.choices[0]?.logprobs).toBeNull();
    expect(JSON.stringify(plain)).not.toContain('token_ids');
    expect(asked.choices[0]?.logprobs?.content).toHaveLength(2);
    asked.choices[0]!.message.content = 'changed by the agent';
    return 0;
  });
  expect(attempt.calls).toHaveLength(2);
  expect(JSON.stringify(attempt)).not.toContain('changed by the agent');
});

test('stop, tools and max_completion_tokens are honoured', async () => {
  const tools = [{ type: 'function' as const, function: { name: 'look', parameters: {} } }];
  await playOne(engine, async (context) => {
    await say(context, 'x', { stop: ['\n'], tools, max_completion_tokens: 3, tool_choice: 'auto', user: 'me' });
    return 0;
  });
  const sent = engine.executed[0]?.request;
  expect(sent).toMatchObject({ stop: ['\n'], tools, max_tokens: 3 });
  for (const name of ['max_completion_tokens', 'user', 'tool_choice']) expect(sent).not.toHaveProperty(name);
});

test('a choice of tools goes along where it changes something, and is part of what was asked', async () => {
  const tools = [{ type: 'function' as const, function: { name: 'look', parameters: {} } }];
  const named = { type: 'function', function: { name: 'look' } };
  const attempt = await playOne(engine, async (context) => {
    await say(context, 'x', { tools, tool_choice: 'auto', parallel_tool_calls: true });
    await say(context, 'x', { tools, tool_choice: named, parallel_tool_calls: false });
    await say(context, 'x', { tools, tool_choice: 'required' });
    return 0;
  });
  const choices = engine.executed.map(({ request: { tool_choice, parallel_tool_calls } }) => [
    tool_choice,
    parallel_tool_calls,
  ]);
  expect(choices).toEqual([
    [undefined, undefined],
    [named, false],
    ['required', undefined],
  ]);
  expect(new Set(attempt.calls.map(({ key }) => key)).size).toBe(3);
});

describe('tool calls are counted', () => {
  const tools = [{ type: 'function' as const, function: { name: 'look', parameters: {} } }];
  const toolCalls = [1, 2].map((id) => ({
    id: String(id),
    type: 'function',
    function: { name: 'look', arguments: '{}' },
  }));
  const askTwice: TestRollout = async (context) => {
    await say(context, 'well-formed', { tools });
    await say(context, 'malformed', { tools });
    return { reward: 1, metrics: { found: true } };
  };
  const startCalling = () =>
    temporaryEngine({
      answer: ({ messages }) =>
        messages[0]?.content === 'malformed'
          ? { content: '<tool_call>{<tool_call>', malformedToolCalls: 2 }
          : { content: '', toolCalls, malformedToolCalls: 0 },
    });

  test('into the metrics of the attempt, when it is played from its journal too', async () => {
    const calling = await startCalling();
    const journal = memoryJournal();
    for (let play = 0; play < 2; play++) {
      const { metrics } = await playOne(calling, askTwice, { journal });
      expect(metrics).toEqual({ toolCalls: 2, malformedToolCalls: 2, found: true });
    }
    expect(calling.executed).toHaveLength(2);
  });

  test('unless no tools were offered, or the agent counts itself', async () => {
    const calling = await startCalling();
    const { metrics } = await playOne(calling, async (context) => say(context, 'malformed').then(() => 1));
    expect(metrics).toEqual({});
    const own = await playOne(calling, async (context) => {
      await say(context, 'x', { tools });
      return { reward: 1, metrics: { toolCalls: 99 } };
    });
    expect(own.metrics).toEqual({ toolCalls: 99, malformedToolCalls: 0 });
  });
});

describe('while training', () => {
  test.each([
    ['temperature', 0.2],
    ['top_p', 0.9],
    ['top_k', 5],
    ['min_p', 0.1],
    ['repetition_penalty', 1.1],
    ['presence_penalty', 1],
    ['frequency_penalty', -1],
    ['logit_bias', { 5: 1 }],
    ['response_format', { type: 'json_object' }],
    ['guided_json', {}],
    ['seed', 3],
    ['bogus', 1],
  ])('%s %j is refused at the call, and ends the activity however the agent takes it', async (name, value) => {
    const swallowing: TestRollout = async (context) => {
      try {
        await say(context, 'x', { [name]: value });
      } catch (error) {
        expect(String(error)).toContain(name);
      }
      return 0;
    };
    const mark = await markOf(playOne(engine, swallowing));
    expect(mark).toMatchObject({ type: 'BadConfig', retryable: false });
    expect(mark.message).toContain(name);
    expect(engine.executed).toEqual([]);
  });

  test.each([
    ['temperature', 1],
    ['top_p', 1],
    ['presence_penalty', 0],
    ['response_format', { type: 'text' }],
    ['stream', false],
    ['top_p', null],
    ['n', 1],
    ['top_logprobs', 3],
    ['stop_token_ids', [5]],
    ['separate_reasoning', false],
  ])('%s %j does not change how tokens are sampled and is accepted', async (name, value) => {
    const attempt = await playOne(engine, async (context) => Number(await say(context, 'x', { [name]: value })));
    expect(attempt.status).toBe('ok');
  });
});

test.each(['train', 'eval'] as const)(
  "the template is the run's; its variables are the run's, and over them the call's: %s",
  async (mode) => {
    const template = { chat_template_sha256: 'd'.repeat(64) };
    const variables = { enable_thinking: false, style: 'plain' };
    const rollout = { chatTemplateKwargs: variables, chatTemplateSha256: template.chat_template_sha256 };
    const twice: TestRollout = async (context) => {
      await say(context, 'x');
      await say(context, 'y', { chat_template_kwargs: { style: 'terse' } });
      return 0;
    };
    const { calls } = await playOne(engine, twice, { mode, rollout });
    const asked = [variables, { ...variables, style: 'terse' }];
    expect(engine.executed.map(({ request }) => request)).toMatchObject(
      asked.map((each) => ({ ...template, chat_template_kwargs: each })),
    );
    expect(calls.map(({ request }) => request['chat_template_kwargs'])).toEqual(expect.arrayContaining(asked));
    const other = playOne(engine, (context) => say(context, 'x', { chat_template_sha256: 'e' }).then(() => 0), {
      mode,
    });
    expect((await markOf(other)).message).toContain("chat_template_sha256 is the run's");
  },
);

test('an evaluation passes on what the engine takes', async () => {
  await playOne(engine, async (context) => Number(await say(context, 'x', { top_p: 0.5, temperature: 0.1, seed: 4 })), {
    mode: 'eval',
  });
  expect(engine.executed[0]?.request).toMatchObject({ top_p: 0.5, temperature: 0.1, seed: 4 });
});

test('another model, another endpoint or no messages are refused', async () => {
  const cases: [RegExp, TestRollout][] = [
    [
      /must be the rollout's model demo@3, got "gpt-5"/,
      (context) => say({ ...context, model: 'gpt-5' }, 'x').then(Number),
    ],
    [/got a request to \/v1\/models/, ({ openai }) => openai.models.list().then(() => 0)],
    [
      /messages must be a list/,
      ({ openai, model }) => openai.chat.completions.create({ model, messages: [] }).then(() => 0),
    ],
  ];
  for (const [message, rollout] of cases) {
    expect((await markOf(playOne(engine, rollout))).message).toMatch(message);
  }
});

test('an answer by another adapter is a PolicyMismatch, never data and never journaled', async () => {
  const journal = memoryJournal();
  const policy = { model: MODEL, adapterSha256: 'a'.repeat(64) };
  const swallowing: TestRollout = (context) => Promise.resolve(askOnce(context)).catch(() => 0);
  const mark = await markOf(playOne(engine, swallowing, { policy, journal }));
  expect(mark).toMatchObject({ type: 'PolicyMismatch', retryable: false });
  expect(mark.message).toContain(policy.adapterSha256);
  expect(mark.message).toContain(fakeAdapterSha256(MODEL));
  expect(journal.segments.every((segment) => segment.length === 0)).toBe(true);
});

test('an engine without token ids cannot be trained with, and is told so', async () => {
  const completion = {
    adapter_sha256: fakeAdapterSha256(MODEL),
    choices: [{ message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
  };
  engine.failNext({ status: 200, body: JSON.stringify(completion) });
  const mark = await markOf(playOne(engine, askOnce));
  expect(mark).toMatchObject({ type: 'BadConfig' });
  expect(mark.message).toContain('return_token_ids');
});

test('a call over maxCallsPerAttempt fails the attempt as data, with what was played', async () => {
  const endless: TestRollout = async (context) => {
    for (let turn = 0; ; turn++) await say(context, `turn ${turn}`).catch(() => 'swallowed');
  };
  const attempt = await playOne(engine, endless, { rollout: { maxCallsPerAttempt: 3 } });
  expect(attempt).toMatchObject({ status: 'failed', reward: null, failure: { type: 'AgentFailed' } });
  expect(attempt.failure?.message).toContain('maxCallsPerAttempt 3');
  expect(attempt.calls).toHaveLength(3);
});

test('a conversation that outgrew the model counts as truncated, also by the words of vLLM', async () => {
  const error = { message: "too long: this model's maximum context length is 64 tokens", code: 400 };
  engine.failNext({ status: 400, body: JSON.stringify({ error }) });
  const attempt = await playOne(engine, (context) => say(context, 'x').then(Number, () => 0.5));
  expect(attempt).toMatchObject({ status: 'ok', reward: 0.5, truncated: true, calls: [] });
});
