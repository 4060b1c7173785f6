import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Conversation } from '../../../store/records/judging/conversation.ts';
import { storedAnswers, storedVerdicts } from '../../../store/records/judging/verdicts.ts';
import type { FileStore } from '../../../store/bytes/file-store.ts';
import { temporaryStore } from '../../temporary-folder.ts';
import { judge, saying, TASK } from './judging.ts';
import { JUDGE_KEY, readPrompt, startScriptedJudge, type JudgeReply, type ScriptedJudge } from './scripted-judge.ts';

let scripted: ScriptedJudge;
let store: FileStore;
beforeEach(async () => {
  scripted = await startScriptedJudge();
  store = temporaryStore();
});
afterEach(() => scripted.close());

const place = { run: 'demo', branch: 0, step: 1, group: 0 };
const kept = () => ({ verdicts: storedVerdicts(store), answers: storedAnswers(store, place) });
const group = [saying('0', 'good'), saying('1', 'good good'), saying('2', 'good'), saying('3', 'bad')];
const scoresOf = (scores: readonly { score: number }[]) => scores.map(({ score }) => score);

describe('what a judge is asked', () => {
  test('the common beginning once, each attempt’s remainder, the tools and the rubric, in one call', async () => {
    const tools = [{ type: 'function', function: { name: 'find', parameters: { type: 'object' } } }];
    const turn = (content: string) => ({ role: 'assistant', content });
    const asks: Conversation[] = [
      { id: 'a', messages: [...TASK, turn('good'), { role: 'user', content: 'more' }, turn('good')], tools },
      { id: 'b', messages: [...TASK, turn('bad')], tools },
    ];
    await judge(scripted, asks, { options: { rubric: 'What is good is better.' } });
    expect(scripted.asked).toHaveLength(1);
    const [question] = scripted.asked;
    expect(question).toMatchObject({ model: 'scripted', authorization: `Bearer ${JUDGE_KEY}` });
    const prompt = readPrompt(question!.messages);
    expect(prompt.rules).toContain('What is good is better.');
    const parsed = (lines: string[]) => lines.map((line) => JSON.parse(line) as unknown);
    expect(parsed(prompt.task)).toEqual(TASK);
    expect(parsed(prompt.tools)).toEqual(tools);
    expect([...prompt.attempts.values()].map(parsed).toSorted((x, y) => x.length - y.length)).toEqual([
      [turn('bad')],
      [turn('good'), { role: 'user', content: 'more' }, turn('good')],
    ]);
  });

  test('parameters of the request are passed on, and are part of the question', async () => {
    const setup = { ...kept(), options: { request: { temperature: 0, max_tokens: 900 } } };
    await judge(scripted, group, setup);
    expect(scripted.asked[0]!.body).toMatchObject({ temperature: 0, max_tokens: 900 });
    await judge(scripted, group, { ...kept(), options: { request: { temperature: 0.5 } } });
    expect(scripted.asked).toHaveLength(2);
  });

  test('further conversations of an attempt are shown with it', async () => {
    const sub = [{ role: 'user', content: 'good good good' }];
    const judged = await judge(scripted, [{ ...saying('a', 'x'), additionalHistories: [sub] }, saying('b', 'good')]);
    expect(scoresOf(judged.scores)).toEqual([0.3, 0.1]);
  });

  test('of very many messages the first and the last are shown, and how many are not', async () => {
    const long = Array.from({ length: 1000 }, (_, index) => ({ role: 'user', content: `message ${index}` }));
    await judge(scripted, [{ id: 'a', messages: [...TASK, ...long] }, saying('b', 'x')]);
    const longest = [...readPrompt(scripted.asked[0]!.messages).attempts.values()].find(({ length }) => length > 1)!;
    expect(longest).toHaveLength(201);
    expect(longest[0]).toContain('message 0');
    expect(longest[100]).toBe('{"leftOut":"800 messages"}');
    expect(longest[200]).toContain('message 999');
  });

  test('short texts stay whole where one is too long', async () => {
    const mixed = [...TASK, { role: 'assistant', content: 'short' }, { role: 'tool', content: 'x'.repeat(100_000) }];
    await judge(scripted, [{ id: 'a', messages: mixed }, saying('b', 'x')], { options: { maxCharsPerAttempt: 1000 } });
    const lines = [...readPrompt(scripted.asked[0]!.messages).attempts.values()].find(({ length }) => length === 2)!;
    expect(JSON.parse(lines[0]!)).toEqual({ role: 'assistant', content: 'short' });
    const { content } = JSON.parse(lines[1]!) as { content: { start: string; leftOut: string; end: string } };
    expect(content.leftOut).toBe(`${100_000 - content.start.length - content.end.length} characters`);
    expect(lines.join('').length).toBeLessThan(1200);
  });
});

describe('scores', () => {
  test('identical attempts are judged once and share the score, ties are allowed', async () => {
    const { scores, spent } = await judge(scripted, [...group, saying('4', 'wood'), saying('5', 'mood')]);
    expect(scoresOf(scores)).toEqual([0.1, 0.2, 0.1, 0, 0, 0]);
    expect(readPrompt(scripted.asked[0]!.messages).attempts.size).toBe(5);
    expect(spent).toEqual({ calls: 1, cached: 0, promptTokens: 1000, completionTokens: 100, usd: null });
  });

  test('a group of equal attempts is judged as one', async () => {
    const { scores } = await judge(scripted, [saying('0', 'good'), saying('1', 'good')]);
    expect(scoresOf(scores)).toEqual([0.1, 0.1]);
    const prompt = readPrompt(scripted.asked[0]!.messages);
    expect([prompt.task.length, [...prompt.attempts.values()].map(({ length }) => length)]).toEqual([2, [1]]);
  });

  test('a verdict is asked for once, whatever the order of the attempts, and a repeated run asks 0 times', async () => {
    const first = await judge(scripted, group, kept());
    const other = { verdicts: storedVerdicts(store), answers: storedAnswers(store, { ...place, run: 'again' }) };
    const second = await judge(scripted, group.toReversed(), other);
    expect(scoresOf(second.scores)).toEqual(scoresOf(first.scores).toReversed());
    expect(second).toMatchObject({ key: first.key, spent: { calls: 0, cached: 1, promptTokens: 0, usd: 0 } });
    expect(scripted.asked).toHaveLength(1);
  });

  test('another rubric, model, tool or word is another question', async () => {
    const setups = [{}, { options: { rubric: 'Otherwise.' } }, { options: { maxCharsPerAttempt: 600 } }];
    for (const setup of setups) await judge(scripted, group, { ...kept(), ...setup });
    await judge(scripted, [...group.slice(1), saying('9', 'new')], kept());
    await judge(
      scripted,
      group.map((each) => ({ ...each, tools: [{ name: 'find' }] })),
      kept(),
    );
    expect(scripted.asked).toHaveLength(5);
  });

  test('cost is reckoned from tokens and prices', async () => {
    const options = { usdPerMillionInput: 2, usdPerMillionOutput: 10 };
    const { spent } = await judge(scripted, group, { options });
    expect(spent.usd).toBeCloseTo(0.003, 10);
  });
});

describe('an answer that cannot be used', () => {
  const names = (): string[] => [...readPrompt(scripted.asked.at(-1)!.messages).attempts.keys()];
  const unusable: [string, string][] = [
    ['no JSON', 'The first one is the best.'],
    ['JSON of another form', '{"winner":1}'],
    ['a number', '7'],
    ['JSON after words', 'Here: {"scores":[]}'],
    ['no scores', '{"scores":[]}'],
    ['ids that were not asked about', '{"scores":[{"id":"1","explanation":"","score":1}]}'],
    ['entries that are none', '{"scores":[null,5,"x"]}'],
    ['nothing', ''],
  ];

  test.each(unusable)('%s is asked again once, saying why', async (_, text) => {
    scripted.replyNext({ text });
    const { scores, spent } = await judge(scripted, group);
    expect(scoresOf(scores)).toEqual([0.1, 0.2, 0.1, 0]);
    expect(spent.calls).toBe(2);
    const [first, again] = scripted.asked;
    expect(again!.messages.slice(0, 2)).toEqual(first!.messages);
    expect(again!.messages[2]!.content).toMatch(/^An earlier answer to this could not be used: /);
    if (text.length > 5) expect(again!.messages[2]!.content).not.toContain(text);
  });

  test('a score out of range, one too few, one twice, and a cut answer are told as such', async () => {
    await judge(scripted, group);
    const entry = (id: string, score: unknown) => ({ id, explanation: 'x', score });
    const [a = '', b = '', c = ''] = names();
    const replies: [object, string][] = [
      [[entry(a, 1.5), entry(b, 0), entry(c, 0)], `the score of ${a} must be a number from 0 to 1`],
      [[entry(a, '1'), entry(b, 0), entry(c, 0)], `the score of ${a} must be a number from 0 to 1`],
      [[entry(a, 1), entry(b, 0)], `it must score ${c} as well`],
      [[entry(a, 1), entry(a, 0), entry(b, 0), entry(c, 0)], `${a} must be scored once`],
      [[{ id: a, score: 1 }, entry(b, 0), entry(c, 0)], `the explanation of ${a} must be text`],
    ];
    for (const [scores, complaint] of replies) {
      scripted.replyNext({ text: JSON.stringify({ scores }) });
      await judge(scripted, group);
      expect(scripted.asked.at(-1)!.messages.at(-1)!.content).toContain(complaint);
    }
    scripted.replyNext({ text: '{"scores":[', finishReason: 'length' });
    await judge(scripted, group);
    expect(scripted.asked.at(-1)!.messages.at(-1)!.content).toContain('cut off at its token limit');
  });

  test('thoughts and a fence around it are no matter', async () => {
    await judge(scripted, group);
    const scores = names().map((id) => ({ id, explanation: 'x', score: 0.5 }));
    const json = JSON.stringify({ scores });
    scripted.replyNext({ text: `<think>{"scores":[]}</think>\n\`\`\`json\n${json}\n\`\`\`\n` });
    expect(scoresOf((await judge(scripted, group)).scores)).toEqual([0.5, 0.5, 0.5, 0.5]);
  });

  test('twice is JudgeFailed, to be asked later, and both answers are kept and counted', async () => {
    scripted.replyNext({ text: 'no' }, { text: 'no' });
    const failing = judge(scripted, group, kept());
    await expect(failing).rejects.toMatchObject({ type: 'JudgeFailed', retryable: true, retryAfterMs: 10_000 });
    scripted.replyNext({ text: 'no' }, { text: 'no' });
    await expect(judge(scripted, group, kept())).rejects.toMatchObject({
      retryAfterMs: 20_000,
      message: expect.stringContaining('gave 4 unusable answers') as string,
    });
    const { spent } = await judge(scripted, group, kept());
    expect(spent).toMatchObject({ calls: 5, promptTokens: 5000 });
    expect(scripted.asked).toHaveLength(5);
  });
});

describe('a judge that does not answer', () => {
  test.each<[string, JudgeReply, RegExp]>([
    ['a 500', { status: 500 }, /^500: scripted$/],
    ['a 429', { status: 429, body: '{"error":{"message":"slow down"}}' }, /^429: slow down$/],
    ['an account without credit', { status: 402, body: '{"error":{"message":"no credit"}}' }, /^402: no credit$/],
    ['a cut connection', { destroy: true }, /^UND_ERR_SOCKET/],
    ['silence', { hang: true }, /^no answer within 300 ms$/],
    ['a page', { body: '<html>' }, /no chat completion: <html>$/],
    ['half an answer', { body: '{"choices":' }, /no chat completion/],
    ['an empty answer', { body: '{}' }, /no chat completion/],
    ['a text', { body: '"x"' }, /no chat completion/],
    ['null', { body: 'null' }, /./],
  ])('%s is waited out', async (_, reply, reason) => {
    scripted.replyNext(reply);
    const waits: string[] = [];
    const { scores, spent } = await judge(scripted, group, { callTimeoutMs: reply.hang ? 300 : 5000, waits });
    expect(scoresOf(scores)).toEqual([0.1, 0.2, 0.1, 0]);
    expect(spent.calls).toBe(1);
    expect(waits).toEqual([expect.stringMatching(/^began: /), expect.stringMatching(reason), 'ended']);
  });

  test('one that is away for longer than the budget is JudgeFailed', async () => {
    await scripted.close();
    const failing = judge(scripted, group, { callRetryBudgetMs: 500 });
    await expect(failing).rejects.toMatchObject({
      type: 'JudgeFailed',
      message: expect.stringMatching(
        /did not answer a call within its retry budget of 500 ms .*ECONNREFUSED/,
      ) as string,
    });
    scripted = await startScriptedJudge();
  });

  test.each([401, 403, 404, 400])('%i is BadConfig, said at once and with what to do', async (status) => {
    scripted.replyNext({ status, body: '{"error":{"message":"you may not"}}' });
    await expect(judge(scripted, group)).rejects.toMatchObject({
      type: 'BadConfig',
      retryable: false,
      message: expect.stringMatching(/refused with 4\d\d: you may not; (check|change|set)/) as string,
    });
    expect(scripted.asked).toHaveLength(1);
  });

  test('one that cannot read so much is shown less of each attempt', async () => {
    const long = [saying('a', 'good '.repeat(4000)), saying('b', 'bad '.repeat(4000))];
    const tooLong = { status: 400, body: '{"error":{"message":"too long","code":"context_length_exceeded"}}' };
    scripted.replyNext(tooLong, { status: 413 }, tooLong);
    const { scores } = await judge(scripted, long, { options: { maxCharsPerAttempt: 16_000 } });
    expect(scoresOf(scores)).toEqual([1, 0]);
    const lengths = scripted.asked.map(({ messages }) => messages[1]!.content.length);
    expect(lengths.map((length) => Math.round(length / 1000))).toEqual([32, 16, 8, 4]);
  });

  test('one that cannot read even a little of each is BadConfig', async () => {
    scripted.replyNext(...Array.from({ length: 9 }, () => ({ status: 413 })));
    await expect(judge(scripted, group, { options: { maxCharsPerAttempt: 4000 } })).rejects.toMatchObject({
      type: 'BadConfig',
      message: expect.stringContaining(
        'cannot read 3 attempts at once, not even with 500 characters of each',
      ) as string,
    });
    expect(scripted.asked).toHaveLength(4);
  });

  test('a call that is given up ends at once', async () => {
    scripted.replyNext({ hang: true });
    const controller = new AbortController();
    const asking = judge(scripted, group, { signal: controller.signal });
    await expect.poll(() => scripted.asked.length).toBe(1);
    controller.abort();
    await expect(asking).rejects.toThrow('aborted');
  });
});

test('an answer that was received is not paid for again, though its process died before the verdict was kept', async () => {
  const verdicts = { ...storedVerdicts(store), write: () => Promise.reject(new Error('killed')) };
  await expect(judge(scripted, group, { ...kept(), verdicts })).rejects.toThrow('killed');
  const { scores, spent } = await judge(scripted, group, kept());
  expect(scoresOf(scores)).toEqual([0.1, 0.2, 0.1, 0]);
  expect(spent.calls).toBe(1);
  expect(scripted.asked).toHaveLength(1);
});

test('of two who judge the same at once, both use the verdict that was kept first', async () => {
  let asked = 0;
  scripted.scoreBy(() => (asked++ < 3 ? 0.2 : 0.9));
  const judged = await Promise.all([judge(scripted, group, kept()), judge(scripted, group, kept())]);
  expect(scoresOf(judged[0].scores)).toEqual(scoresOf(judged[1].scores));
});

test('a verdict that was tampered with is StoreCorrupt', async () => {
  const { key } = await judge(scripted, group, kept());
  await store.replace(`judgments/${key}.json`, new TextEncoder().encode('{"scores":{"x":{"score":7}}}'));
  await expect(judge(scripted, group, kept())).rejects.toMatchObject({ type: 'StoreCorrupt' });
});
