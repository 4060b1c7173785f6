/** Email search: both editions played. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import agent from '../../examples/email-search/agent.ts';
import type { Mail } from '../../examples/email-search/mail.ts';
import { FIRST_EXAM_SEED, makeMailbox } from '../../examples/email-search/mailbox.ts';
import small from '../../examples/email-search/small-email.ts';
import { makeSmallMailbox } from '../../examples/email-search/small-mailbox.ts';
import { playAgent, type ScriptedAnswers } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/trajectories.ts';

const call = (name: string, args: object) => ({ name, arguments: args });
const calls = (...toolCalls: ReturnType<typeof call>[]) => ({ toolCalls });
/** What the tools said since the model's last turn. */
const told = ({ messages }: CallRequest) =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1).map(({ content }) => String(content));
const firstId = (request: CallRequest) => JSON.parse(told(request)[0]!) as { id: number }[];

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
