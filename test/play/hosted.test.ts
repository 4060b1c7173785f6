/** Hosted models beside the policy: answered by a real HTTP server, journaled, paid once, never trained. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import type { ModelClient } from '../../play/transports/model-client.ts';
import { FAKE_ENGINE_KEY, type FakeFailure } from '../fake-engine.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { nodeFlags } from '../../workers/process/module-path.ts';
import { markOf, memoryJournal, playAttempts, playOne, say, skippingClock, type TestRollout } from './play.ts';
import { sharedEngine } from './shared-engine.ts';

const NAME = 'openai/gpt-5-mini';

const engine = await sharedEngine();
const provider = await sharedEngine({ answer: ({ messages }) => `hosted: ${String(messages.at(-1)?.content)}` });
beforeEach(() => {
  vi.stubEnv('OPENAI_BASE_URL', `${provider.url}/v1`);
  vi.stubEnv('OPENAI_API_KEY', FAKE_ENGINE_KEY);
});
afterEach(() => vi.unstubAllEnvs());

const ask = (hosted: Pick<ModelClient, 'openai' | 'model'>, content: string) => say(hosted, content);

/** Two turns of the policy, and a question to another model after each. */
const both: TestRollout = async (context) => {
  const hosted = context.hosted(NAME, { usdPerMillionInput: 1, usdPerMillionOutput: 10 });
  let heard = '';
  for (let turn = 0; turn < 2; turn++) {
    const digit = await say(context, `turn ${turn} after ${heard}`);
    heard = await ask(hosted, `what of ${digit}?`);
  }
  return heard.length;
};

test('a hosted model answers beside the policy, and stands in the trajectory with its tokens and its cost', async () => {
  const { calls, hostedCalls = [], metrics } = await playOne(engine, both);
  const digits = calls.map(({ message }) => message.content);
  expect(provider.executed.map(({ request }) => [request.model, request.messages.at(-1)?.content])).toEqual(
    digits.map((digit) => ['gpt-5-mini', `what of ${String(digit)}?`]),
  );
  for (const name of ['return_token_ids', 'seed']) expect(provider.executed[0]?.request).not.toHaveProperty(name);
  expect(provider.executed[0]?.headers).not.toHaveProperty('x-temper-call');
  expect(calls).toHaveLength(2);
  expect(hostedCalls).toHaveLength(2);
  const [first] = hostedCalls;
  const promptTokens = `<user>what of 1?`.length;
  expect(first).toMatchObject({
    model: NAME,
    occurrence: 0,
    refusal: null,
    promptTokens,
    completionTokens: 2,
    usd: (promptTokens + 20) / 1e6,
  });
  expect(first?.choices[0]).toMatchObject({ finishReason: 'stop', message: { role: 'assistant' } });
  expect(metrics).toEqual({ hostedCalls: 2, hostedUsd: (2 * (promptTokens + 20)) / 1e6 });
});

test('the policy’s turns, keys and seeds are those of the same agent without hosted models, which has nothing of them', async () => {
  const rollout =
    (isHosted: boolean): TestRollout =>
    async (context) => {
      const digit = await say(context, 'first');
      const asking = isHosted ? ask(context.hosted(NAME), digit) : null;
      const completion = await context.openai.chat.completions.create({
        model: context.model,
        messages: [{ role: 'user', content: 'second' }],
      });
      await asking;
      context.rewardTurn(completion, 0.5);
      return 1;
    };
  const without = await playOne(engine, rollout(false));
  const { hostedCalls, ...beside } = await playOne(engine, rollout(true));
  expect(hostedCalls).toHaveLength(1);
  expect({ ...beside, metrics: {} }).toStrictEqual(without);
});

test('an attempt ended in the middle pays for no answer twice and ends with the same bytes', async () => {
  const undisturbed = await playAttempts(engine, both, { attempts: 4 });
  engine.executed.length = 0;
  provider.executed.length = 0;
  const journal = memoryJournal();
  for (const budget of [2, 5, Infinity]) {
    engine.failWhen(() => (engine.executed.length >= budget * 2 ? { status: 503 } : null));
    provider.failWhen(() => (provider.executed.length >= budget ? { status: 503 } : null));
    const playing = playAttempts(engine, both, { attempts: 4, journal, rollout: { callRetryBudgetMs: 300 } });
    if (budget < Infinity) await markOf(playing);
    else expect(JSON.stringify(await playing)).toBe(JSON.stringify(undisturbed));
  }
  expect([engine.executed.length, provider.executed.length]).toEqual([8, 8]);
});

test('a process that is killed after an answer pays for it once, and the next one ends with the same bytes', async () => {
  const run = promisify(execFile);
  const work = async (killAt: number, store = folder) => {
    const line = [...nodeFlags(), fileURLToPath(new URL('hosted-worker.ts', import.meta.url)), store, engine.url];
    const ended = run(process.execPath, [...line, String(killAt)]);
    return ended.catch(({ signal }: { signal: string }) => ({ stdout: signal }));
  };
  const folder = temporaryFolder();
  expect((await work(1)).stdout).toBe('SIGKILL');
  expect((await work(3)).stdout).toBe('SIGKILL');
  const { stdout } = await work(0);
  expect([engine.executed.length, provider.executed.length]).toEqual([4, 4]);
  expect(JSON.parse(stdout)).toMatchObject({ status: 'ok', unclaimedAnswers: 0, metrics: { hostedCalls: 4 } });
  expect((await work(0, temporaryFolder())).stdout).toBe(stdout);
});

test('identical questions are told apart by their order, and find their own answers again', async () => {
  const journal = memoryJournal();
  const heard: string[][] = [];
  const twice: TestRollout = async (context) => {
    const hosted = context.hosted(NAME);
    heard.push(await Promise.all([ask(hosted, 'same'), ask(hosted, 'same'), ask(hosted, 'other')]));
    return 1;
  };
  const first = await playOne(engine, twice, { journal });
  const again = await playOne(engine, twice, { journal });
  expect(provider.executed).toHaveLength(3);
  expect(heard[1]).toEqual(heard[0]);
  expect(again).toEqual(first);
  expect(again.hostedCalls?.map(({ occurrence }) => occurrence).toSorted()).toEqual([0, 0, 1]);
});

test('answers that a repetition does not ask for again are counted', async () => {
  const journal = memoryJournal();
  const asking =
    (what: string): TestRollout =>
    (context) =>
      ask(context.hosted(NAME), what).then(() => 1);
  await playOne(engine, asking('monday'), { journal });
  expect((await playOne(engine, asking('tuesday'), { journal })).unclaimedAnswers).toBe(1);
});

describe('of any client', () => {
  test('a streamed answer tells the journaled one, in the first playing and in a repetition', async () => {
    const journal = memoryJournal();
    const told: string[] = [];
    const streaming: TestRollout = async ({ hosted }) => {
      const { baseURL, apiKey, fetch, model } = hosted(NAME);
      const client = new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 });
      const stream = await client.chat.completions.create({
        model,
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: 'user', content: 'in pieces' }],
      });
      const chunks: string[] = [];
      for await (const chunk of stream) chunks.push(JSON.stringify(chunk));
      told.push(chunks.join('\n'));
      return 1;
    };
    await playOne(engine, streaming, { journal });
    await playOne(engine, streaming, { journal });
    expect(provider.executed).toHaveLength(1);
    expect(provider.executed[0]?.request).not.toHaveProperty('stream');
    expect(told[0]).toContain('hosted: in pieces');
    expect(told[0]).toContain('"usage":{"prompt_tokens"');
    expect(told[1]).toBe(told[0]);
  });

  test('responses are answered too, and a limit of tokens has the name that the provider knows', async () => {
    const record = await playOne(engine, async ({ hosted }) => {
      const { openai, model } = hosted(NAME);
      const { output_text: text } = await openai.responses.create({ model, input: 'hello', max_output_tokens: 16 });
      return text.length;
    });
    expect(record.reward).toBe('hosted: hello'.length);
    expect(provider.executed[0]?.request).toMatchObject({ max_completion_tokens: 16 });
    expect(provider.executed[0]?.request).not.toHaveProperty('max_tokens');
  });

  test('another server is named by its address, and its key by a variable', async () => {
    vi.stubEnv('MY_KEY', FAKE_ENGINE_KEY);
    const record = await playOne(engine, async ({ hosted }) => {
      const { openai, model } = hosted(`${provider.url}/v1#my/model`, { keyVariable: 'MY_KEY' });
      return (await say({ openai, model }, 'x')).length;
    });
    expect(record.hostedCalls).toMatchObject([{ model: `${provider.url}/v1#my/model`, usd: null }]);
    expect(record.metrics).toEqual({ hostedCalls: 1 });
    expect(provider.executed[0]?.request.model).toBe('my/model');
    expect(JSON.stringify(record)).not.toContain(FAKE_ENGINE_KEY);
  });
});

describe('what ends the run', () => {
  const cases: [string, () => void, TestRollout, RegExp][] = [
    [
      'an unknown provider',
      () => undefined,
      ({ hosted }) => ask(hosted('opnai/gpt-5'), 'x').then(Number),
      /^context\.hosted must be given provider\/model, the provider one of openai, .*, got "opnai\/gpt-5"; pass such a name/,
    ],
    [
      'a missing key',
      () => vi.stubEnv('OPENAI_API_KEY', ''),
      ({ hosted }) => ask(hosted(NAME), 'x').then(Number),
      /^openai\/gpt-5-mini needs a key in OPENAI_API_KEY, which is not set; export it/,
    ],
    [
      'a wrong key',
      () => vi.stubEnv('OPENAI_API_KEY', 'wrong'),
      ({ hosted }) => ask(hosted(NAME), 'x').then(Number),
      /^the hosted model openai\/gpt-5-mini at http.* refused with 401: wrong key; set OPENAI_API_KEY to a key that it accepts/,
    ],
    [
      'an unknown option',
      () => undefined,
      ({ hosted }) => ask(hosted(NAME, { price: 1 } as object), 'x').then(Number),
      /^context\.hosted has the options usdPerMillionInput, usdPerMillionOutput, keyVariable, got price; correct its name/,
    ],
    [
      'half a price',
      () => undefined,
      ({ hosted }) => ask(hosted(NAME, { usdPerMillionInput: 1 }), 'x').then(Number),
      /must both be numbers of at least 0, got 1 and undefined; pass both, or none/,
    ],
    [
      'another model’s name',
      () => undefined,
      ({ hosted }) => ask({ ...hosted(NAME), model: 'gpt-6' }, 'x').then(Number),
      /^model must be gpt-5-mini for a client of hosted\('openai\/gpt-5-mini'\), got "gpt-6"/,
    ],
  ];
  test.each(cases)('%s, though the agent would go on', async (_name, prepare, rollout, message) => {
    prepare();
    const mark = await markOf(playOne(engine, async (context) => Promise.resolve(rollout(context)).catch(() => 0)));
    expect(mark).toMatchObject({ type: 'BadConfig', message: expect.stringMatching(message) as string });
    expect(provider.executed).toEqual([]);
  });
});

describe('a server that does not answer', () => {
  const failures: FakeFailure[] = [
    { status: 503 },
    { status: 429 },
    { status: 402 },
    { destroy: true },
    { status: 200, body: '{}' },
  ];
  test('is asked again until it does', async () => {
    provider.failNext(...failures);
    const record = await playOne(engine, both, { clock: skippingClock(), rollout: { callRetryBudgetMs: 60_000 } });
    expect(record.status).toBe('ok');
    expect(provider.executed).toHaveLength(2);
  });

  test('makes no data: the attempt is played again later', async () => {
    provider.failWhen(() => ({ status: 503 }));
    const rollout: TestRollout = (context) => Promise.resolve(both(context)).catch(() => 0);
    const mark = await markOf(playOne(engine, rollout, { rollout: { callRetryBudgetMs: 100 } }));
    expect(mark).toMatchObject({
      type: 'EngineFailed',
      message: expect.stringMatching(
        /^the hosted model openai\/gpt-5-mini at .* did not answer a call within its retry budget of 100 ms \(last: 503/,
      ) as string,
    });
  });
});

test('a request that the provider refuses is the agent’s affair, and refused the same in a repetition', async () => {
  const journal = memoryJournal();
  provider.failNext({ status: 400, body: '{"error":{"message":"against the rules","code":"content_filter"}}' });
  const caught: unknown[] = [];
  const careful: TestRollout = async (context) => {
    try {
      return (await ask(context.hosted(NAME), 'bad words')).length;
    } catch (error) {
      caught.push((error as { status: number; code: string; message: string }).code);
      return 0.25;
    }
  };
  const first = await playOne(engine, careful, { journal });
  const again = await playOne(engine, careful, { journal });
  expect(caught).toEqual(['content_filter', 'content_filter']);
  expect(first).toMatchObject({ status: 'ok', reward: 0.25, truncated: false });
  expect(first.hostedCalls).toMatchObject([{ choices: [], refusal: 'against the rules' }]);
  expect(again).toEqual(first);
  expect(provider.executed).toEqual([]);
  provider.failNext({ status: 400, body: '{"error":{"message":"against the rules"}}' });
  const failed = await playOne(engine, (context) => ask(context.hosted(NAME), 'bad words').then(Number));
  expect(failed).toMatchObject({
    status: 'failed',
    failure: { message: expect.stringContaining('against the rules') as string },
  });
});

test('a completion that has a member named refused is an answer, first and in a repetition', async () => {
  const journal = memoryJournal();
  const choices = [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }];
  const body = JSON.stringify({ id: 'x', object: 'chat.completion', model: 'gpt', choices, refused: false });
  provider.failNext({ status: 200, body });
  const asking: TestRollout = async (context) => (await ask(context.hosted(NAME), 'hello')).length;
  const first = await playOne(engine, asking, { journal });
  expect(first).toMatchObject({ status: 'ok', reward: 4, hostedCalls: [{ refusal: null }] });
  expect(await playOne(engine, asking, { journal })).toEqual(first);
});

test('an agent that asks without end is ended, and a client that forgot fetch reaches nobody', async () => {
  const endless: TestRollout = async ({ hosted }) => {
    const model = hosted(NAME);
    for (;;) await ask(model, 'again');
  };
  const record = await playOne(engine, endless, { rollout: { maxCallsPerAttempt: 3 } });
  expect(record.failure?.message).toMatch(/maxCallsPerAttempt 3 calls of hosted models/);
  expect(provider.executed).toHaveLength(3);
  const forgot = await playOne(engine, async ({ hosted }) => {
    const { baseURL, apiKey, model } = hosted(NAME);
    return ask({ openai: new OpenAI({ baseURL, apiKey, maxRetries: 0 }), model }, 'x').then(Number);
  });
  expect(forgot.failure?.message).toMatch(/Connection error/);
});
