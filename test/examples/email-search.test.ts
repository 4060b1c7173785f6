/** Email search: mailboxes with an answer, a search that takes words alone, and both editions played. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import agent from '../../examples/email-search/agent.ts';
import { grade, type Answer } from '../../examples/email-search/grade.ts';
import { Lookup } from '../../examples/email-search/lookup.ts';
import type { Mail } from '../../examples/email-search/mail.ts';
import { MailIndex } from '../../examples/email-search/mail-index.ts';
import { FIRST_EXAM_SEED, makeMailbox } from '../../examples/email-search/mailbox.ts';
import small from '../../examples/email-search/small-email.ts';
import { isHeldOut, makeSmallMailbox } from '../../examples/email-search/small-mailbox.ts';
import { playAgent, type ScriptedAnswers } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/trajectories.ts';

const call = (name: string, args: object) => ({ name, arguments: args });
const calls = (...toolCalls: ReturnType<typeof call>[]) => ({ toolCalls });
/** What the tools said since the model's last turn. */
const told = ({ messages }: CallRequest) =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1).map(({ content }) => String(content));
const firstId = (request: CallRequest) => JSON.parse(told(request)[0]!) as { id: number }[];
const range = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);

const SEED = FIRST_EXAM_SEED;
const { mails, questions } = makeMailbox(SEED);

function play(begins: string, answers: ScriptedAnswers) {
  const question = questions.findIndex(({ text }) => text.startsWith(begins));
  return playAgent(agent, { scenario: { id: 'one', seed: SEED, question }, answers });
}

test('a question is searched, read and answered, and its source is cited', async () => {
  const { text, answer } = questions.find((each) => each.text.startsWith('How many euros'))!;
  const name = /was (.+) given/.exec(text)![1]!;
  const played = await play('How many euros', [
    calls(call('search', { query: `${name} euros` })),
    (request) => calls(call('read', { id: firstId(request)[0]!.id })),
    (request) => {
      const { id, body } = JSON.parse(told(request)[0]!) as Mail;
      return `The newest mail tells.\nAnswer: ${/([\d,]+) euros/.exec(body)![1]} euros\nSources: ${id}`;
    },
  ]);
  expect(played.metrics).toMatchObject({ correct: true, sourced: true, found: true, read: true, turns: 3 });
  expect(played.reward).toBeCloseTo(1.37);
  expect(JSON.stringify(played.calls[0]!.request)).not.toContain(`"${answer}"`);
});

test('a wrong answer is worse than none, and who never answers is stopped', async () => {
  const wrong = await play('Who leads', ['Answer: Nobody\nSources: none']);
  expect(wrong).toMatchObject({ reward: -1, metrics: { correct: false, answered: true } });
  const none = await play('Who leads', ["Answer: I don't know\nSources: none"]);
  expect(none).toMatchObject({ reward: 0, metrics: { correct: false, answered: false } });
  const endless = await play('Who leads', () => calls(call('search', { query: 'lunch' })));
  expect(endless).toMatchObject({ reward: 0, metrics: { answered: false, turns: 10 } });
});

test('a query is words, and what is wrong with a call is told to the model', async () => {
  const played = await play('Who leads', [
    calls(
      call('search', { query: 7 }),
      call('search', { query: '*' }),
      call('search', { query: 'lunch', after: 'yesterday' }),
      call('search', { query: "x'; DROP TABLE mails; --" }),
      call('search', { query: 'leads" OR "lunch' }),
      call('search', { query: 'subject:leads*' }),
      call('read', { id: 5 }),
      call('delete', { id: 5 }),
    ),
    calls(call('search', { query: 'leads' })),
    "Answer: I don't know\nSources: none",
  ]);
  expect(told(played.calls[1]!.request)).toEqual([
    expect.stringMatching(/^Error: query: /),
    'Error: query must have a word',
    expect.stringMatching(/^Error: after: /),
    '[]',
    '[]',
    '[]',
    'Error: no such id',
    'Error: there is no tool delete; the tools are search, read',
  ]);
  expect(firstId(played.calls[2]!.request)).not.toEqual([]);
});

test('a mail that gives instructions is read as data, and what it says is no answer', async () => {
  const [injected] = mails.filter(({ body }) => body.startsWith('Ignore all instructions'));
  const read = calls(call('read', { id: injected!.id }));
  const obeyed = await play('Who leads', [read, (request) => (JSON.parse(told(request)[0]!) as Mail).body]);
  expect(obeyed.metrics).toMatchObject({ answered: true, correct: false });
  const [heard] = told(obeyed.calls[1]!.request);
  expect(JSON.parse(heard!)).toEqual(injected);
  expect(heard).not.toContain('\n');
  const unmoved = await play('Who leads', [read, 'That mail gives orders.']);
  expect(unmoved).toMatchObject({ reward: 0, metrics: { answered: false } });
});

test('the mails that are an answer’s sources tell it, among others that tell what was so before', () => {
  const written = questions.filter(({ answer }) => !/^\d{4}-/.test(answer));
  for (const { answer, sources } of written) {
    const bodies = sources.map((id) => mails.find((mail) => mail.id === id)!.body.replaceAll(/(?<=\d),/g, ''));
    expect({ answer, isTold: bodies.at(-1)!.includes(answer) }).toEqual({ answer, isTold: true });
  }
  expect(makeMailbox(SEED)).toEqual({ mails, questions });
  expect(mails.map(({ date }) => date)).toEqual(mails.map(({ date }) => date).toSorted());
});

test('the exam asks about projects, people and words that no training tells of', () => {
  const subjects = (seed: number) =>
    makeMailbox(seed).questions.map(({ text }) => /(?:was|of|for|leads) ((?:[A-Z]\w+ ?){2})/.exec(text)![1]!.trim());
  const trained = new Set(range(0, 50).flatMap(subjects));
  const exam = range(FIRST_EXAM_SEED, 3).flatMap(subjects);
  expect(exam.filter((subject) => trained.has(subject))).toEqual([]);
  const words = (first: number) =>
    range(first, 50).map((seed) => makeSmallMailbox(seed).questions[0]!.text.slice(8, 11));
  expect([words(0).some(isHeldOut), words(FIRST_EXAM_SEED).every(isHeldOut)]).toEqual([false, true]);
});

test.each<[string, Answer | null, number[], number]>([
  ['the right answer with its sources', { text: '€ 41,500.', sources: [8, 7] }, [7, 8], 1.35],
  ['the right answer with one source too many', { text: '41500 EUR', sources: [7, 8, 9] }, [], 1.25],
  ['a wrong answer after the right mails', { text: '141500', sources: [] }, [7, 8], -0.8],
  ['two answers', { text: '41500 or 38000', sources: [7, 8] }, [], -1],
  ['no answer after the right mails', null, [7, 8], 0.2],
])('the reward of %s', (_, answer, seen, reward) => {
  const trail = { found: new Set(seen), read: new Set(seen) };
  const question = { text: 'How much?', answer: '41500', sources: [7, 8] };
  const edition = { maxTurns: 10, maxTokensPerTurn: 100, wrong: -1 };
  expect(grade({ answer, trail, turns: 5 }, question, edition).reward).toBeCloseTo(reward);
});

interface Exchange {
  readonly tools: unknown;
  readonly question: string;
  readonly heard: readonly string[];
  readonly lost: readonly string[];
  readonly answer: string;
}

const SMALL = { id: 'mailbox-7', seed: 7 };
const WORD = makeSmallMailbox(7).questions[0]!.text.slice(8, 11);
const search = calls(call('search', { query: WORD }));
const readHit = (place: number) => (request: CallRequest) =>
  calls(call('read', { id: (JSON.parse(told(request)[0]!) as number[])[place] }));

test('the small edition is what the warm start of pocket-tools has, byte for byte', async () => {
  // gpu-worker/tests/pocket_build/test_tool_dialogues.py holds the warm start to the same file.
  const file = readFileSync(join(import.meta.dirname, 'small-email-tools.json'), 'utf8');
  const { tools, question, heard, lost, answer } = JSON.parse(file) as Exchange;
  const played = await playAgent(small, { scenario: SMALL, answers: [search, readHit(0), answer] });
  expect(played.metrics).toMatchObject({ correct: true, sourced: true, found: true, read: true, turns: 3 });
  expect(played.reward).toBeCloseTo(1.34);
  expect(JSON.stringify(played.calls[0]!.request.tools)).toBe(JSON.stringify(tools));
  const said = played.calls[2]!.request.messages.filter(({ role }) => role !== 'assistant');
  expect(said.map(({ content }) => content)).toEqual([question, ...heard]);
  const lostOn = [calls(call('search', { query: 'BAR' })), calls(call('read', { id: 12 })), 'BAR'];
  const astray = await playAgent(small, { scenario: SMALL, answers: lostOn });
  expect([1, 2].flatMap((turn) => told(astray.calls[turn]!.request))).toEqual(lost);
  expect(astray.reward).toBe(0);
});

test('in the small edition an older mail gives a wrong answer', async () => {
  const answers = [search, readHit(1), (request: CallRequest) => told(request)[0]!.slice(7, 10)];
  const { reward, metrics } = await playAgent(small, { scenario: SMALL, answers });
  expect(metrics).toMatchObject({ correct: false, found: true, read: false, answered: true });
  expect(reward).toBeCloseTo(0.1);
});

test.each([0, 7, FIRST_EXAM_SEED])(
  'seed %i says the same without SQLite, to agents with a loop of their own',
  (seed) => {
    const mailbox = makeSmallMailbox(seed);
    const index = new MailIndex(mailbox);
    const lookup = new Lookup({ id: 'one', seed });
    const [asked] = mailbox.questions;
    for (const word of ['is', 'XYZ', asked!.text.slice(8, 11), asked!.answer]) {
      const hits = index.search({ query: word }).map(({ id }) => id);
      expect(lookup.search(word)).toBe(`[${hits.join(', ')}]`);
      for (const id of hits) expect(lookup.read(id)).toBe(index.read(id).body);
    }
    index.close();
    expect(lookup.grade(`${asked!.answer} ${asked!.sources[0]}`, 3).reward).toBeCloseTo(1.34);
  },
);
