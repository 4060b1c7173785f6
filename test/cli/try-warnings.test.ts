/** Warnings from a few attempts, as pure functions of what was played. */
import { describe, expect, test } from 'vitest';
import { countRows } from '../../cli/try/rows.ts';
import type { TriedAttempt, TriedGroup } from '../../cli/try/play.ts';
import { warningsOf } from '../../cli/try/warnings.ts';
import { attemptOf, callOf, said, user } from '../store/records/made-attempt.ts';
import type { AttemptRecord, CallRecord, ChatMessage } from '../../store/records/groups/trajectories.ts';

interface Call {
  messages?: ChatMessage[];
  prompt?: number[];
  sampled?: number[];
  finishReason?: string;
}

function call({ messages = [user('hi')], prompt = [1], sampled = [2], finishReason = 'stop' }: Call): CallRecord {
  const logprobs = sampled.map(() => -1);
  return callOf(messages, 'x', { finishReason, promptTokenIds: prompt, tokenIds: sampled, logprobs });
}

function tried(record: Partial<AttemptRecord> = {}, more: Partial<TriedAttempt> = {}): TriedAttempt {
  const calls = record.calls ?? [call({})];
  return {
    record: attemptOf(0, calls, { reward: 1, ...record }),
    asked: calls,
    seconds: 1,
    promptTokens: 1,
    completionTokens: 1,
    thrownAt: null,
    replay: null,
    ...more,
  };
}

const rewards = (...values: number[]): TriedGroup => ({
  scenarioId: 'a',
  attempts: values.map((reward) => tried({ reward })),
});
const group = (...attempts: TriedAttempt[]): TriedGroup => ({ scenarioId: 'a', attempts });
const good = rewards(0, 1);

test('attempts whose rewards differ are warned of nothing', () => {
  expect(warningsOf([good, rewards(1, 1)])).toEqual([]);
});

describe('the reward', () => {
  test('that never varies within any group gives no signal, whatever it is between them', () => {
    const [warning = ''] = warningsOf([rewards(0, 0), rewards(1, 1)]);
    expect(warning).toMatch(/^the reward never varies: .* \(0\.000, 1\.000\), which gives no learning signal; /);
  });

  test('of one attempt each tells nothing', () => {
    expect(warningsOf([rewards(0), rewards(0)])).toEqual([]);
  });

  test('that a judge alone gives is not known here', () => {
    expect(warningsOf([group(tried({ reward: null }), tried({ reward: null }))])).toEqual([]);
  });
});

test('a metric that is missing is named, failed attempts aside', () => {
  const failed = tried({ status: 'failed', reward: null, failure: { type: 'AgentFailed', message: 'Error: no' } });
  const attempts = [tried({ reward: 0, metrics: { won: true, moves: 3 } }), tried({ metrics: { moves: 1 } }), failed];
  expect(warningsOf([group(...attempts)])).toEqual([
    '1 of 3 attempts failed, the first with: Error: no',
    'the metric won is missing in 1 of 2 attempts, which biases its mean; report every metric on every attempt',
  ]);
});

test('a failure names the line of the agent’s code', () => {
  const failure = { type: 'AgentFailed', message: 'Error: no' } as const;
  const [first] = warningsOf([
    group(tried({ status: 'failed', reward: null, failure }, { thrownAt: 'agent.ts:7:13' })),
  ]);
  expect(first).toBe('1 of 1 attempt failed, the first with: Error: no (agent.ts:7:13)');
});

test('cut answers, an outgrown context, silent attempts and other replays', () => {
  const cut = tried({
    reward: 0,
    truncated: true,
    calls: [call({ finishReason: 'length' }), call({ prompt: [1, 2, 4] })],
  });
  expect(warningsOf([group(cut, tried())])).toEqual([
    '1 of 3 answers was cut at the token limit, and a run masks such attempts; raise max_tokens, or ask for shorter answers',
  ]);
  expect(warningsOf([good, group(tried({ truncated: true }))])).toEqual([
    "1 attempt outgrew the model's context, and a run masks such attempts; shorten the conversation",
  ]);
  expect(warningsOf([good, group(tried({ calls: [] }))])[0]).toContain('1 attempt made no call to the model');
  expect(warningsOf([good, group(tried({}, { replay: 'call 1 is not the recorded one' }))])[0]).toMatch(
    /^1 attempt did something else when it was replayed.* The first: call 1 is not the recorded one$/,
  );
});

describe('training rows', () => {
  const first = call({ prompt: [1, 2], sampled: [3] });
  const next = [user('hi'), said('x'), user('more')];

  test('a call that extends the tokens goes on, one that keeps the history but not its tokens does not', () => {
    const goesOn = call({ messages: next, prompt: [1, 2, 3, 4], sampled: [5] });
    const rewritten = call({ messages: next, prompt: [1, 2, 9, 4], sampled: [5] });
    expect(countRows([first, goesOn])).toEqual({ continued: 1, rewritten: 0 });
    expect(countRows([first, rewritten])).toEqual({ continued: 0, rewritten: 1 });
  });

  test('a system prompt that changes rewrites the history, too', () => {
    const changed = call({ messages: [{ role: 'system', content: '12:01' }, ...next], prompt: [7, 2, 3, 4] });
    expect(countRows([first, changed])).toEqual({ continued: 0, rewritten: 1 });
  });

  test('a conversation that begins elsewhere is no rewritten one: a sub-agent, a game shown anew in each turn', () => {
    expect(countRows([first, call({ messages: [user('another')], prompt: [8] })])).toEqual({
      continued: 0,
      rewritten: 0,
    });
  });

  test('a call without sampled tokens makes no row, and hosted models have none at all', () => {
    const hosted = call({ prompt: [], sampled: [] });
    expect(countRows([hosted, { ...hosted, request: { messages: next } }])).toEqual({ continued: 0, rewritten: 0 });
  });

  test('a turn that tool_choice opened and that is written otherwise later is told by itself', () => {
    const opened = (prompt: number[], choice: unknown = 'required') => {
      const plain = call({ prompt, sampled: [3] });
      return { ...plain, request: { ...plain.request, tool_choice: choice } };
    };
    const after = call({ messages: next, prompt: [1, 3, 4], sampled: [5] });
    const named = { type: 'function', function: { name: 'look' } };
    const warned = (...calls: CallRecord[]) => warningsOf([good, group(tried({ calls }))]);
    for (const choice of ['required', named])
      expect(warned(opened([1, 2], choice), after)).toEqual([
        expect.stringMatching(/^1 turn with a tool_choice ends a training row: /),
      ]);
    expect(warned(opened([1, 2], 'auto'), after)).toEqual([expect.stringMatching(/^every turn rewrites its history/)]);
    expect(warned(opened([1]), after)).toEqual([]);
  });

  test('only a history that is rewritten in every turn is warned of', () => {
    const rewritten = call({ messages: next, prompt: [1, 2, 9, 4], sampled: [5] });
    const goesOn = call({ messages: next, prompt: [1, 2, 3, 4], sampled: [5] });
    expect(warningsOf([good, group(tried({ calls: [first, rewritten] }))])[0]).toMatch(
      /^every turn rewrites its history/,
    );
    expect(warningsOf([good, group(tried({ calls: [first, goesOn, rewritten] }))])).toEqual([]);
  });
});
