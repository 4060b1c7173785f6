/** The loop of model and tools. */
import { setTimeout as sleep } from 'node:timers/promises';
import type OpenAI from 'openai';
import { expect, test } from 'vitest';
import { z } from 'zod';

import { tool, toolLoop } from '../../sdk/index.ts';
import { memoryJournal } from '../play/play.ts';
import { contents, QUESTION, search, Stage, type Script } from './scripted.ts';

const stage = new Stage();

test('a tool is called, its result goes back, and the answer ends the loop', async () => {
  const { result, metrics } = await stage.play([[['search', { query: 'budget' }]], 'Mail 7.'], [search]);
  expect(result).toMatchObject({ ended: 'answer', answer: 'Mail 7.', turns: 2 });
  expect(result.messages).toEqual([
    QUESTION,
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'call-0-0', type: 'function', function: { name: 'search', arguments: '{"query":"budget"}' } }],
    },
    { role: 'tool', tool_call_id: 'call-0-0', content: '["mail about budget"]' },
    { role: 'assistant', content: 'Mail 7.' },
  ]);
  expect(result.calls).toEqual([
    {
      turn: 1,
      id: 'call-0-0',
      name: 'search',
      arguments: { query: 'budget' },
      content: '["mail about budget"]',
      failed: false,
    },
  ]);
  expect(metrics).toEqual({ toolCalls: 1, malformedToolCalls: 0 });
});

test('what goes wrong with a call is told to the model, which may do better', async () => {
  const fails = tool({
    name: 'fails',
    run: () => {
      throw new RangeError('the mailbox is closed');
    },
  });
  const script = [
    [
      ['serch', {}],
      ['search', '{"query": '],
      ['search', { query: 5, limit: 'many' }],
      ['fails', {}],
      ['fails', '[]'],
      ['search', ''],
    ],
    [['search', { query: 'budget' }]],
    'Mail 7.',
  ] satisfies Script;
  const played = await stage.play(script, [search, fails]);
  expect(contents(played).slice(2)).toEqual([
    'Error: there is no tool serch; the tools are search, fails',
    'Error: arguments must be JSON, got {"query": ',
    expect.stringMatching(/^Error: query: .*; limit: .*/),
    'Error: the mailbox is closed',
    'Error: arguments must be an object, got []',
    expect.stringMatching(/^Error: query: /),
    '',
    '["mail about budget"]',
    'Mail 7.',
  ]);
  expect(played.result.calls.map(({ failed }) => failed)).toEqual([true, true, true, true, true, true, false]);
});

test('an error is told in at most 2,000 characters', async () => {
  const fails = tool({ name: 'fails', run: () => Promise.reject(new Error('x'.repeat(10_000))) });
  const played = await stage.play([[['fails', {}]], 'Oh.'], [fails]);
  expect(played.result.calls[0]?.content).toHaveLength(2000 + 'Error: '.length);
});

test('calls without an id get one of their own', async () => {
  const call = { type: 'function', function: { name: 'search', arguments: '{"query":"x"}' } };
  const { result } = await stage.play([{ content: '', toolCalls: [call, { ...call, id: '' }] }, 'Done.'], [search]);
  expect(result.messages.slice(1, 4)).toEqual([
    { role: 'assistant', content: '', tool_calls: [0, 1].map((index) => ({ ...call, id: `call-1-${index}` })) },
    { role: 'tool', tool_call_id: 'call-1-0', content: '["mail about x"]' },
    { role: 'tool', tool_call_id: 'call-1-1', content: '["mail about x"]' },
  ]);
});

test('a malformed call is told to the model, and the loop goes on', async () => {
  const malformed = { content: '<tool_call>{</tool_call>', malformedToolCalls: 1 };
  const played = await stage.play([malformed, [['search', { query: 'budget' }]], 'Mail 7.'], [search]);
  expect(contents(played).slice(1, 3)).toEqual([
    '<tool_call>{</tool_call>',
    expect.stringContaining('could not be read'),
  ]);
  expect(played.result).toMatchObject({ ended: 'answer', turns: 3 });
  expect(played.metrics).toEqual({ toolCalls: 1, malformedToolCalls: 1 });
});

test.each([
  ['one after the other', false, ['begin 20', 'end 20', 'begin 1', 'end 1']],
  ['at once where that is allowed', true, ['begin 20', 'begin 1', 'end 1', 'end 20']],
])('calls of a turn run %s, and are told in their order', async (_, concurrent, expected) => {
  const order: string[] = [];
  const slow = tool({
    name: 'slow',
    parameters: z.object({ ms: z.number() }),
    run: async ({ ms }) => {
      order.push(`begin ${ms}`);
      await sleep(ms);
      order.push(`end ${ms}`);
      return `slept ${ms}`;
    },
  });
  const calls = [20, 1].map((ms) => ['slow', { ms }] as const);
  const played = await stage.play([calls, 'Done.'], [slow], { concurrent });
  expect(order).toEqual(expected);
  expect(contents(played).slice(2, 4)).toEqual(['slept 20', 'slept 1']);
});

test('where one call of a turn ends the attempt, all of them have ended before that is told', async () => {
  const calls = ['lost', 'held'].map((name) => ({ id: name, type: 'function', function: { name, arguments: '{}' } }));
  const choice = { finish_reason: 'tool_calls', message: { role: 'assistant', content: null, tool_calls: calls } };
  const openai = { chat: { completions: { create: () => Promise.resolve({ choices: [choice] }) } } };
  const order: string[] = [];
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const tools = [
    tool({ name: 'lost', once: true, run: () => 'never' }),
    tool({ name: 'held', run: () => released.then(() => order.push('held has ended')) }),
  ];
  const once = () => Promise.reject(new Error('an outage'));
  const context = { openai: openai as unknown as OpenAI, model: 'demo', once };
  const played = toolLoop(context, { messages: [QUESTION], tools, concurrent: true });
  const told = played.catch((error: Error) => order.push(error.message));
  await new Promise(setImmediate);
  release();
  await told;
  expect(order).toEqual(['held has ended', 'an outage']);
});

test('a tool that ends the loop does so when it succeeds, after the other calls of its turn', async () => {
  const handed: number[] = [];
  const submit = tool({
    name: 'submit',
    parameters: z.object({ id: z.number() }),
    ends: true,
    run: ({ id }) => void handed.push(id),
  });
  const script: Script = [
    [['submit', { id: 'seven' }]],
    [
      ['submit', { id: 7 }],
      ['search', { query: 'x' }],
    ],
  ];
  const { result } = await stage.play(script, [search, submit]);
  expect(result).toMatchObject({ ended: 'tool', answer: null, turns: 2 });
  expect(result.messages.at(-1)).toMatchObject({ role: 'tool', content: '["mail about x"]' });
  expect(handed).toEqual([7]);
});

test('turns are limited; the calls of the last one are run', async () => {
  const script = Array.from({ length: 5 }, () => [['search', { query: 'x' }]] as const);
  const { result } = await stage.play(script, [search], { maxTurns: 3 });
  expect(result).toMatchObject({ ended: 'turns', answer: null, turns: 3 });
  expect(result.calls).toHaveLength(3);
});

test('tokens are limited in all and in each turn', async () => {
  // The fake engine says that each answer has two tokens.
  const script = Array.from({ length: 9 }, () => [['search', { query: 'x' }]] as const);
  const { result } = await stage.play(script, [search], { maxTokens: 5, maxTokensPerTurn: 3 });
  expect(result).toMatchObject({ ended: 'tokens', turns: 3, tokens: 6 });
  expect(stage.asked().map(({ max_tokens }) => max_tokens)).toEqual([3, 3, 1]);
});

test('without limits of its own the loop asks for the tokens that the run has set', async () => {
  await stage.play(['Done.'], [search], {}, { rollout: { maxTokens: 77 } });
  expect(stage.asked()[0]?.max_tokens).toBe(77);
});

test('an answer that was cut ends the loop', async () => {
  const { result } = await stage.play([{ content: 'Mail', finishReason: 'length' }], [search]);
  expect(result).toMatchObject({ ended: 'tokens', answer: null });
});

test.each([
  ['outgrows the model', 400, 'context_length_exceeded'],
  ['is too long to be sent', 413, 'too_large'],
])('a conversation that %s ends the loop, with what was played', async (_, status, code) => {
  const answering = await stage.begin([[['search', { query: 'x' }]]]);
  const body = JSON.stringify({ error: { message: 'too long', type: 'BadConfig', code } });
  answering.failWhen((_call, received) => (received > 1 ? { status, body } : null));
  const { result } = await stage.play([], [search]);
  expect(result).toMatchObject({ ended: 'context', turns: 1 });
  expect(result.calls).toHaveLength(1);
});

test('a choice of the request goes along', async () => {
  await stage.play(['Done.'], [search], { request: { tool_choice: 'required', parallel_tool_calls: false } });
  expect(stage.asked()[0]).toMatchObject({ tool_choice: 'required', parallel_tool_calls: false });
});

test('a tool with side effects runs once, its failures too, however often the attempt is played', async () => {
  const effects: string[] = [];
  const pay = tool({
    name: 'pay',
    parameters: z.object({ amount: z.number() }),
    once: true,
    run: ({ amount }) => {
      effects.push(`${amount}`);
      if (amount > 10) throw new Error(`only on try ${effects.length}`);
      return { paid: amount, receipt: effects.length };
    },
  });
  const script: Script = [
    [
      ['pay', { amount: 1 }],
      ['pay', { amount: 99 }],
    ],
    [['pay', { amount: 1 }]],
    'Paid.',
  ];
  const journal = memoryJournal();
  const first = await stage.play(script, [pay, search], {}, { journal });
  const again = await stage.play(script, [pay, search], {}, { journal });
  expect(effects).toEqual(['1', '99', '1']);
  expect(again.result).toEqual(first.result);
  expect(contents(again).slice(2, 4)).toEqual(['{"paid":1,"receipt":1}', 'Error: only on try 2']);
  // Nothing was asked twice either.
  expect(stage.asked()).toHaveLength(3);
});

test('an attempt that ended while a tool ran asks no more', async () => {
  const never = tool({ name: 'never', run: () => sleep(600) });
  const { failure } = await stage.play([[['never', {}]], 'Done.'], [never], {}, { rollout: { attemptTimeoutMs: 400 } });
  expect(failure).toContain('attemptTimeoutMs');
  expect(stage.asked()).toHaveLength(1);
});

test.each([
  ['no tools', {}, [], 'there must be at least one tool'],
  ['a name twice', {}, [search, search], 'got search twice'],
  ['no turns', { maxTurns: 0 }, [search], 'maxTurns of toolLoop must be a whole number of at least 1, got 0'],
])('%s: refused', async (_, options, tools, words) => {
  const { failure } = await stage.play(['x'], tools, options);
  expect(failure).toContain(words);
});

test('a tool that is to run once needs a context that can', async () => {
  const lasting = tool({ name: 'pay', once: true, run: () => 1 });
  await expect(
    toolLoop({ openai: {} as never, model: 'm' }, { messages: [QUESTION], tools: [lasting] }),
  ).rejects.toThrow('the tool pay must run only once, but the context has no once');
});
