/** Agents against scripted answers, as their authors test them. */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import emailSearch from '../../../examples/email-search/agent.ts';
import multiplication from '../../../examples/multiplication/agent.ts';
import tictactoe from '../../../examples/tic-tac-toe/agent.ts';
import { defineAgent, label, tool, toolLoop, type RolloutContext } from '../../../sdk/index.ts';
import { playAgent } from '../../../sdk/testing/index.ts';
import { countRows } from '../../../cli/try/rows.ts';

const problem = { id: '7x8', left: 7, right: 8 };
const one = { id: 'one' };

/** An agent of one rollout. */
const agentOf = (rollout: (context: RolloutContext) => Promise<number>) =>
  defineAgent({ name: 'a', scenarios: [], rollout });

const ask = ({ openai, model }: RolloutContext, content: string, more: object = {}) =>
  openai.chat.completions.create({ model, messages: [{ role: 'user', content }], ...more });

describe('the examples’ agents', () => {
  test('a right and a wrong answer', async () => {
    const right = await playAgent(multiplication, { scenario: problem, answers: ['56'] });
    expect(right).toMatchObject({ reward: 1, metrics: { correct: true }, failure: null, truncated: false });
    const wrong = await playAgent(multiplication, { scenario: problem, answers: ['15'] });
    expect(wrong).toMatchObject({ reward: 0, metrics: { correct: false } });
  });

  test('a game of many turns, answered by a function of the request', async () => {
    const free = (board: unknown) => /[1-9]/.exec(String(board))?.[0] ?? '';
    const { metrics, calls, failure } = await playAgent(tictactoe, {
      scenario: { id: 'game-7', seed: 7 },
      answers: ({ messages }) => free(messages.at(-1)?.content),
    });
    expect(failure).toBeNull();
    expect(metrics).toMatchObject({ illegal: false });
    expect(calls.length).toBeGreaterThan(2);
    expect(calls[0]?.request).toMatchObject({ messages: [{ role: 'user', content: '123456789' }], max_tokens: 2 });
  });

  test('tools are called, and their results come back in a conversation that goes on token for token', async () => {
    const found: unknown[] = [];
    const call = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args }] });
    const { calls, metrics } = await playAgent(emailSearch, {
      scenario: { id: 'mailbox-3', seed: 3 },
      answers: [
        ({ messages }) => call('search', { query: /What is (\w+)/.exec(String(messages[0]?.content))![1] }),
        ({ messages }) => call('read', { id: (JSON.parse(String(messages.at(-1)?.content)) as number[])[0] }),
        ({ messages }) => {
          found.push(messages.at(-1)?.content);
          return 'KEL 4';
        },
      ],
    });
    expect(found).toEqual([expect.stringMatching(/^[A-Z]{3} is [A-Z]{3}\.$/)]);
    expect(metrics).toMatchObject({ toolCalls: 2, malformedToolCalls: 0 });
    expect(countRows(calls)).toEqual({ continued: 2, rewritten: 0 });
  });
});

describe('what goes wrong', () => {
  test('an agent that throws has failed: the message as a trajectory has it, and the error with its stack', async () => {
    const agent = agentOf(async () => {
      throw new TypeError('no such cell');
    });
    const played = await playAgent(agent, { scenario: one, answers: [] });
    expect(played).toMatchObject({ reward: null, failure: 'TypeError: no such cell' });
    expect((played.error as Error).stack).toContain('play-agent.test.ts');
  });

  test('a request that training refuses rejects, unless evaluation’s rules are asked for', async () => {
    const agent = agentOf(async (context) => (await ask(context, 'hi', { top_p: 0.5 })).choices.length);
    await expect(playAgent(agent, { scenario: one, answers: ['x'] })).rejects.toThrow(
      'top_p cannot be set while training',
    );
    expect(await playAgent(agent, { scenario: one, answers: ['x'], rules: 'eval' })).toMatchObject({ reward: 1 });
  });

  test('an answer that nobody scripted rejects, even where the agent catches everything', async () => {
    const agent = agentOf(async (context) => {
      try {
        await ask(context, 'first');
        await ask(context, 'second');
      } catch {
        return 0;
      }
      return 1;
    });
    await expect(playAgent(agent, { scenario: one, answers: ['x'] })).rejects.toThrow(
      'the agent asks for answer 2, but answers has 1; add one, or end the conversation before it (the last message was {"role":"user","content":"second"})',
    );
  });

  test('what a scripted function throws is the test’s failure', async () => {
    const agent = agentOf(async (context) => (await ask(context, 'hi')).choices.length);
    const answers = () => {
      throw new RangeError('not what I expected');
    };
    await expect(playAgent(agent, { scenario: one, answers })).rejects.toThrow('not what I expected');
  });

  test('a cut answer marks the attempt as truncated', async () => {
    const agent = agentOf(async (context) => (await ask(context, 'hi')).choices.length);
    const answers = [{ content: 'to be con', finishReason: 'length' as const }];
    expect(await playAgent(agent, { scenario: one, answers })).toMatchObject({ reward: 1, truncated: true });
  });
});

describe('hosted models', () => {
  const agent = agentOf(async ({ openai, model, hosted }) => {
    const critic = hosted('openai/gpt-5-mini');
    const messages = [{ role: 'user' as const, content: 'Is it good?' }];
    const { choices } = await critic.openai.chat.completions.create({ model: critic.model, messages });
    await openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] });
    return choices[0]?.message.content === 'Yes.' ? 1 : 0;
  });

  test('say what the test has written for them, without a key', async () => {
    const hosted = { 'openai/gpt-5-mini': ['Yes.'] };
    const { reward, calls, hostedCalls } = await playAgent(agent, { scenario: one, answers: ['x'], hosted });
    expect(reward).toBe(1);
    expect(calls).toHaveLength(1);
    expect(hostedCalls).toMatchObject([{ model: 'openai/gpt-5-mini', request: { messages: [{ role: 'user' }] } }]);
  });

  test('without answers reject, and say what to add', async () => {
    await expect(playAgent(agent, { scenario: one, answers: ['x'] })).rejects.toThrow(
      "the agent calls the hosted model openai/gpt-5-mini, but hosted has no answers of it; add hosted: { 'openai/gpt-5-mini': ['…'] }",
    );
    const hosted = { 'openai/gpt-5-mini': [] };
    await expect(playAgent(agent, { scenario: one, answers: ['x'], hosted })).rejects.toThrow(
      "the agent asks for answer 1, but hosted['openai/gpt-5-mini'] has 0",
    );
  });
});

test('broken JSON in a tool call is told to the model, as in a run', async () => {
  const look = tool({ name: 'look', parameters: {}, run: () => 'seen' });
  const agent = agentOf(async (context) => {
    const { calls } = await toolLoop(context, { messages: [{ role: 'user', content: 'go' }], tools: [look] });
    return calls.filter(({ failed }) => failed).length;
  });
  const answers = [{ toolCalls: [{ name: 'look', arguments: '{"id": ' }] }, 'done'];
  expect(await playAgent(agent, { scenario: one, answers })).toMatchObject({ reward: 1 });
});

test('logs, turn rewards, labels and several choices are as in a run', async () => {
  const agent = agentOf(async (context) => {
    const { openai, model, rewardTurn, log, metric } = context;
    const completion = await openai.chat.completions.create(
      { model, messages: [{ role: 'user', content: 'hi' }], n: 2 },
      label('both'),
    );
    rewardTurn(completion.choices[1]!, 0.5);
    log('choices', completion.choices.length);
    metric('seen', true);
    return 1;
  });
  const { reward, logs, metrics, calls } = await playAgent(agent, { scenario: one, answers: ['x'] });
  expect({ reward, logs, metrics }).toEqual({ reward: 1.5, logs: ['choices 2'], metrics: { seen: true } });
  expect(calls.map((call) => call.label)).toEqual(['both', 'both']);
});

test('a call that the agent gives up ends, though the script has no answer to it yet', async () => {
  const agent = agentOf(async ({ openai, model }) => {
    const giveUp = new AbortController();
    const options = { signal: giveUp.signal };
    const asking = openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] }, options);
    setTimeout(() => giveUp.abort(), 20);
    await expect(asking).rejects.toThrow('Request was aborted');
    return 1;
  });
  const answers = () => new Promise<string>(() => undefined);
  expect(await playAgent(agent, { scenario: one, answers })).toMatchObject({ reward: 1, failure: null, calls: [] });
});

test('a client that was made before anything was played asks the script', async () => {
  // A module of the agent would do the same; its test has imported `temper-rl/testing` before it.
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://127.0.0.1:1', maxRetries: 0 });
  const agent = defineAgent({
    name: 'a',
    scenarios: [],
    captureModel: 'gpt-5-mini',
    rollout: async () => Number((await client.responses.create({ model: 'gpt-5-mini', input: 'hi' })).output_text),
  });
  expect(await playAgent(agent, { scenario: one, answers: ['7'] })).toMatchObject({ reward: 7, failure: null });
});

test('random is the seed’s, and temperature the one that was asked for', async () => {
  const agent = agentOf(async ({ random, metric, temperature }) => {
    metric('temperature', temperature);
    return random();
  });
  const play = (options: object) => playAgent(agent, { scenario: one, answers: [], ...options });
  const [first, again, other] = [await play({}), await play({ seed: 1 }), await play({ seed: 2, temperature: 0.5 })];
  expect(again.reward).toBe(first.reward);
  expect(other.reward).not.toBe(first.reward);
  expect([first.metrics, other.metrics]).toEqual([{ temperature: 1 }, { temperature: 0.5 }]);
});
