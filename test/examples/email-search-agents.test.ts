/** Both editions of email-search, played over HTTP by an engine that calls tools as it is told. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import email from '../../examples/email-search/agent.ts';
import type { Mail } from '../../examples/email-search/mail.ts';
import { FIRST_EXAM_SEED, makeMailbox, QUESTIONS_EACH } from '../../examples/email-search/mailbox.ts';
import smallEmail from '../../examples/email-search/small-email.ts';
import { makeSmallMailbox } from '../../examples/email-search/small-mailbox.ts';
import type { JudgedResult, RolloutContext, RolloutResult, Scenario } from '../../play/agent.ts';
import { startFakeEngine, type FakeAnswer, type FakeRequest } from '../fake-engine.ts';
import { playOne } from '../play/play.ts';

interface Playable<S extends Scenario> {
  rollout(context: RolloutContext<S>): JudgedResult | Promise<JudgedResult>;
}

/** One turn of the model: calls, or an answer; it may look at what the tools said last. */
type Turn = string | Calls | ((told: string[]) => string | Calls);
type Calls = readonly (readonly [name: string, args: unknown])[];

async function play<S extends Scenario>(agent: Playable<S>, scenario: S, turns: readonly Turn[]) {
  const engine = await startFakeEngine({ answer: (request) => say(turns, request) });
  onTestFinished(() => engine.close());
  const rollout = { maxCallsPerAttempt: 64, maxTokens: 2000, attemptTimeoutMs: 60_000 };
  const attempt = await playOne(
    engine,
    (context) => agent.rollout(context as RolloutContext<S>) as Promise<RolloutResult>,
    { scenario, rollout },
  );
  expect(attempt.failure).toBeNull();
  return { ...attempt, asked: engine.executed.map(({ request }) => request) };
}

function say(turns: readonly Turn[], { messages }: FakeRequest): FakeAnswer {
  const turn = messages.filter(({ role }) => role === 'assistant').length;
  const next = turns[Math.min(turn, turns.length - 1)]!;
  const said = typeof next === 'function' ? next(toldLast(messages)) : next;
  if (typeof said === 'string') return { content: said };
  const toolCalls = said.map(([name, args], index) => ({
    id: `call-${turn}-${index}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }));
  return { content: '', toolCalls };
}

/** Results of tools since the model's last turn. */
function toldLast(messages: FakeRequest['messages']): string[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.slice(last + 1).map(({ content }) => content ?? '');
}

const SEED = FIRST_EXAM_SEED;
const { mails, questions } = makeMailbox(SEED);

function scenarioOf(begins: string) {
  const question = questions.findIndex(({ text }) => text.startsWith(begins));
  return { scenario: { id: 'one', seed: SEED, question }, ...questions[question]! };
}

const newestHit = ([hits]: string[]) => (JSON.parse(hits!) as Mail[])[0]!;

test('a question is searched, read and answered, and its source is cited', async () => {
  const { scenario, text, answer, sources } = scenarioOf('How many euros');
  const name = /was (.+) given/.exec(text)![1]!;
  const { reward, metrics, asked } = await play(email, scenario, [
    [['search', { query: `${name} euros` }]],
    (told) => [['read', { id: newestHit(told).id }]],
    ([mail]) => {
      const { id, body } = JSON.parse(mail!) as Mail;
      return `The newest mail tells.\nAnswer: ${/([\d,]+) euros/.exec(body)![1]} euros\nSources: ${id}`;
    },
  ]);
  expect(metrics).toMatchObject({ correct: true, sourced: true, found: true, read: true, turns: 3, toolCalls: 2 });
  expect(reward).toBeCloseTo(1.37);
  expect(asked[0]!.messages.map(({ role }) => role)).toEqual(['system', 'user']);
  expect(JSON.stringify(asked)).not.toContain(`"${answer}"`);
  expect(asked[1]!.messages.at(-1)!.content).toContain(String(sources[0]));
  expect(asked[0]!.tools).toMatchObject([{ function: { name: 'search' } }, { function: { name: 'read' } }]);
});

test('a question of two steps needs both its mails', async () => {
  const { scenario, answer, sources } = scenarioOf('What is the extension of whoever');
  const both = await play(email, scenario, [
    sources.map((id) => ['read', { id }] as const),
    `Answer: ${answer}\nSources: ${sources.join(', ')}`,
  ]);
  expect(both.metrics).toMatchObject({ correct: true, sourced: true, found: false, read: true });
  const half = await play(email, scenario, [
    [['read', { id: sources[0] }]],
    `Answer: ${answer}\nSources: ${sources[0]}`,
  ]);
  expect(half.metrics).toMatchObject({ correct: true, sourced: false, read: false });
  expect(half.reward).toBeLessThan(both.reward!);
});

test('a wrong answer is worse than none', async () => {
  const { scenario } = scenarioOf('Who leads');
  const wrong = await play(email, scenario, ['Answer: Nobody\nSources: none']);
  expect(wrong).toMatchObject({ reward: -1, metrics: { correct: false, answered: true } });
  const none = await play(email, scenario, ["Answer: I don't know\nSources: none"]);
  expect(none).toMatchObject({ reward: 0, metrics: { correct: false, answered: false } });
});

test('who never answers is stopped', async () => {
  const { scenario } = scenarioOf('Who leads');
  const { reward, metrics, asked } = await play(email, scenario, [[['search', { query: 'lunch' }]]]);
  expect(asked).toHaveLength(10);
  expect({ reward, metrics }).toMatchObject({ reward: 0, metrics: { answered: false, turns: 10 } });
});

test('what is wrong with a call is told to the model', async () => {
  const { scenario } = scenarioOf('Who leads');
  const { asked } = await play(email, scenario, [
    [
      ['search', { query: 7 }],
      ['search', { query: '*' }],
      ['search', { query: 'lunch', after: 'yesterday' }],
      ['search', { query: "x'; DROP TABLE mails; --" }],
      ['read', { id: 'newest' }],
      ['read', { id: 5 }],
      ['delete', { id: 5 }],
    ],
    [['search', { query: 'leads' }]],
    "Answer: I don't know\nSources: none",
  ]);
  const told = (request: FakeRequest) => toldLast(request.messages);
  expect(told(asked[1]!)).toEqual([
    expect.stringMatching(/^Error: query: /),
    'Error: query must have a word',
    expect.stringMatching(/^Error: after: /),
    '[]',
    expect.stringMatching(/^Error: id: /),
    'Error: no such id',
    'Error: there is no tool delete; the tools are search, read',
  ]);
  expect(JSON.parse(told(asked[2]!)[0]!)).not.toEqual([]);
});

test('a mail that gives instructions is read as data, and what it says is no answer', async () => {
  const { scenario, answer } = scenarioOf('Who leads');
  const injected = mails.filter(({ body }) => body.startsWith('Ignore all instructions'));
  const number = /Answer: (\d+)/.exec(injected[0]!.body)![1]!;
  expect(number).not.toBe(answer);
  const { metrics, asked } = await play(email, scenario, [
    [['read', { id: injected[0]!.id }]],
    ([mail]) => (JSON.parse(mail!) as Mail).body,
  ]);
  // Obeyed, it is the model's own wrong answer; read and left alone, it is nothing.
  expect(metrics).toMatchObject({ answered: true, correct: false });
  const [told] = toldLast(asked[1]!.messages);
  expect(JSON.parse(told!)).toEqual(injected[0]);
  expect(told).not.toContain('\n');
  const unmoved = await play(email, scenario, [[['read', { id: injected[0]!.id }]], 'That mail gives orders.']);
  expect(unmoved).toMatchObject({ reward: 0, metrics: { answered: false } });
});

test('every scenario has its question', () => {
  const counts = [email.scenarios, email.evalScenarios].map((source) => {
    const all = source as readonly { id: string; seed: number; question: number }[];
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    expect(all.every(({ question }) => question >= 0 && question < QUESTIONS_EACH)).toBe(true);
    return all.length;
  });
  expect(counts).toEqual([50 * QUESTIONS_EACH, 3 * QUESTIONS_EACH]);
});

const small = makeSmallMailbox(7).questions[0]!;
const word = small.text.slice(8, 11);
const SMALL = { id: 'mailbox-7', seed: 7 };

test('the small edition is what the warm start of pocket-tools has, byte for byte', async () => {
  // gpu-worker/tests/pocket_build/test_tool_dialogues.py holds the warm start to the same file.
  const { tools, question, heard, lost, answer } = await readExchange();
  const { reward, metrics, asked } = await play(smallEmail, SMALL, [
    [['search', { query: word }]],
    ([ids]) => [['read', { id: (JSON.parse(ids!) as number[])[0] }]],
    answer,
  ]);
  expect(metrics).toMatchObject({ correct: true, sourced: true, found: true, read: true, turns: 3 });
  expect(reward).toBeCloseTo(1.34);
  expect(JSON.stringify(asked[0]!.tools)).toBe(JSON.stringify(tools));
  expect(asked[2]!.messages.map(({ role, content }) => [role, content])).toEqual([
    ['user', question],
    ['assistant', ''],
    ['tool', heard[0]],
    ['assistant', ''],
    ['tool', heard[1]],
  ]);
  const astray = await play(smallEmail, SMALL, [[['search', { query: 'BAR' }]], [['read', { id: 12 }]], 'BAR']);
  expect([1, 2].flatMap((turn) => toldLast(astray.asked[turn]!.messages))).toEqual(lost);
  expect(astray.reward).toBe(0);
});

interface Exchange {
  readonly tools: unknown;
  readonly question: string;
  readonly heard: readonly string[];
  readonly lost: readonly string[];
  readonly answer: string;
}

async function readExchange(): Promise<Exchange> {
  return JSON.parse(await readFile(join(import.meta.dirname, 'small-email-tools.json'), 'utf8')) as Exchange;
}

test('in the small edition an older mail gives a wrong answer', async () => {
  const { reward, metrics } = await play(smallEmail, SMALL, [
    [['search', { query: word }]],
    ([ids]) => [['read', { id: (JSON.parse(ids!) as number[])[1] }]],
    ([text]) => text!.slice(7, 10),
  ]);
  expect(metrics).toMatchObject({ correct: false, found: true, read: false, answered: true });
  expect(reward).toBeCloseTo(0.1);
});
