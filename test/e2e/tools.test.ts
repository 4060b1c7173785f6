/**
 * Tools against the real engine: a GPU worker that serves a model which was fitted, in seconds, to what the
 * assistant says below. Everything between is real: template, tokens, sampling, parsing, HTTP, the openai client.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';

import { tool, toolLoop, type ToolLoopResult } from '../../sdk/index.ts';
import { GPU_WORKER_FOLDER } from '../../workers/project/folders.ts';
import { until } from '../until.ts';
import { freePort } from '../free-port.ts';
import { openTools } from '../run/tools.ts';
import { playOne } from '../play/play.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const KEY = 'a key of this test';
const MODEL = 'taught';
const TURNS = 12;

const PARAMETERS = { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] };
/** The members in the order in which `runTools` sends them: the prompt shows them so. */
const RUN_TOOLS = [
  { type: 'function', function: { name: 'read', parameters: PARAMETERS, description: 'Reads a mail.' } },
  { type: 'function', function: { name: 'drop', parameters: PARAMETERS, description: 'Drops a mail.' } },
];
const read = tool({
  name: 'read',
  description: 'Reads a mail.',
  parameters: z.object({ id: z.number() }),
  run: ({ id }) => `next ${(id * 7 + 3) % 10}`,
});

const ask = (content: string) => ({ role: 'user' as const, content });
const callText = (name: string, id: number) => `<tool_call>{"name": "${name}", "arguments": {"id": ${id}}}</tool_call>`;
const call = (name: string, id: number) => ({ function: { name, arguments: `{"id": ${id}}` } });
const told = (content: string) => ({ role: 'tool', content });
const CUT = '<tool_call>{"name": "read", "arguments": {"id": </tool_call>';

/** `text` is what the model is to say (gpu-worker/tests/server/fitted.py); the other members are what an agent sends back of it. */
function conversations(): object[] {
  return [
    {
      tools: RUN_TOOLS,
      messages: [
        ask('Tidy up.'),
        {
          role: 'assistant',
          text: `Two calls. ${callText('read', 7)}${callText('drop', 8)}`,
          content: 'Two calls. ',
          tool_calls: [call('read', 7), call('drop', 8)],
        },
        told('{"subject":"Grüße"}'),
        told('gone'),
        { role: 'assistant', text: 'Grüße, and 8 is gone.' },
      ],
    },
    {
      tools: RUN_TOOLS,
      tool_choice: { type: 'function', function: { name: 'drop' } },
      messages: [ask('Drop 9.'), { role: 'assistant', text: ' {"id": 9}}</tool_call>' }],
    },
    { tools: RUN_TOOLS, messages: [ask('Stumble.'), { role: 'assistant', text: CUT }] },
    { tools: [read.definition], messages: longConversation() },
  ];
}

function longConversation(): object[] {
  const messages: object[] = [ask('Read on.')];
  for (let turn = 1, id = 1; turn < TURNS; turn++, id = (id * 7 + 3) % 10) {
    messages.push({ role: 'assistant', text: callText('read', id), content: '', tool_calls: [call('read', id)] });
    messages.push(told(`next ${(id * 7 + 3) % 10}`));
  }
  return [...messages, { role: 'assistant', text: 'All read.' }];
}

const folder = temporaryFolder();
let worker: ChildProcess;
let url: string;
let client: OpenAI;

beforeAll(async () => {
  const { python } = await openTools();
  const write = (name: string, value: object) => {
    writeFileSync(join(folder, name), JSON.stringify(value));
    return join(folder, name);
  };
  const model = join(folder, 'model');
  const fitting = [model, write('conversations.json', conversations())];
  const models = write('models.json', { [MODEL]: model });
  const port = await freePort();
  const store = pathToFileURL(join(folder, 'store')).href;
  const settings = { store, models, port, role: 'sample', engine: { threads: 1 } };
  const serving = ['--settings', JSON.stringify(settings), '--leash'];
  worker = spawn(python, ['-m', 'tests.server.fitted', ...fitting, ...serving], {
    cwd: GPU_WORKER_FOLDER,
    stdio: ['pipe', 'ignore', 'inherit'],
    env: { ...process.env, TEMPER_ENGINE_KEY: KEY },
  });
  url = `http://127.0.0.1:${port}`;
  const listens = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => sleep(200, false),
    );
  await until('the model is fitted and served', async () => worker.exitCode !== null || (await listens()), 600_000);
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY });
});

afterAll(async () => {
  worker.stdin?.end();
  if (worker.exitCode === null) await once(worker, 'exit');
});

/** Tools that know nothing of Temper. */
function runnableTools(asked: unknown[]) {
  const parse = (text: string) => JSON.parse(text) as { id: number };
  const noting = (name: string, answer: unknown) => (args: { id: number }) => {
    asked.push([name, args]);
    return answer as string;
  };
  const [first, second] = RUN_TOOLS.map(({ function: shown }) => shown);
  return [
    { type: 'function' as const, function: { ...first!, parse, function: noting('read', { subject: 'Grüße' }) } },
    { type: 'function' as const, function: { ...second!, parse, function: noting('drop', 'gone') } },
  ];
}

test('the openai client’s runTools runs to its end: two calls in one turn, their results, the answer', async () => {
  const asked: unknown[] = [];
  const runner = client.chat.completions.runTools({
    model: MODEL,
    temperature: 0,
    messages: [ask('Tidy up.')],
    tools: runnableTools(asked),
  });
  expect(await runner.finalContent()).toBe('Grüße, and 8 is gone.');
  expect(asked).toEqual([
    ['read', { id: 7 }],
    ['drop', { id: 8 }],
  ]);
  const [first, second] = runner.allChatCompletions();
  expect(first?.choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: 'Two calls. ' } });
  expect(second?.choices[0]).toMatchObject({ finish_reason: 'stop' });
  expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
});

test('a named tool is called by runTools, which ends with it', async () => {
  const asked: unknown[] = [];
  const runner = client.chat.completions.runTools({
    model: MODEL,
    temperature: 0,
    messages: [ask('Drop 9.')],
    tools: runnableTools(asked),
    tool_choice: { type: 'function', function: { name: 'drop' } },
  });
  expect(await runner.finalFunctionToolCall()).toMatchObject({ name: 'drop', arguments: '{"id": 9}' });
  expect(await runner.finalFunctionToolCallResult()).toBe('gone');
  expect(asked).toEqual([['drop', { id: 9 }]]);
});

test('a malformed call comes as text, and is counted', async () => {
  const completion = await client.chat.completions.create({
    model: MODEL,
    temperature: 0,
    messages: [ask('Stumble.')],
    tools: RUN_TOOLS as OpenAI.Chat.ChatCompletionTool[],
  });
  expect(completion.choices[0]).toMatchObject({
    message: { content: CUT },
    finish_reason: 'stop',
    malformed_tool_calls: 1,
  });
});

test('an attempt of twelve turns with tools goes on token for token, so that it is one row', async () => {
  let result: ToolLoopResult | null = null;
  const attempt = await playOne(
    { url, key: KEY },
    async (context) => {
      result = await toolLoop(context, { messages: [ask('Read on.')], tools: [read], maxTurns: TURNS });
      return 1;
    },
    {
      policy: { model: MODEL, adapterSha256: null },
      rollout: {
        temperature: 0,
        maxTokens: 80,
        maxCallsPerAttempt: 20,
        attemptTimeoutMs: 60_000,
        callTimeoutMs: 30_000,
      },
    },
  );
  expect(attempt.failure).toBeNull();
  expect(result).toMatchObject({ ended: 'answer', answer: 'All read.', turns: TURNS });
  expect(attempt.metrics).toEqual({ toolCalls: TURNS - 1, malformedToolCalls: 0 });
  expect(attempt.calls).toHaveLength(TURNS);
  for (const [index, later] of attempt.calls.slice(1).entries()) {
    const { promptTokenIds, tokenIds } = attempt.calls[index]!;
    const conversation = [...promptTokenIds, ...tokenIds];
    expect(later.promptTokenIds.slice(0, conversation.length)).toEqual(conversation);
  }
});
