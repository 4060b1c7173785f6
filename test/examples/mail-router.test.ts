/** Mail router: what an answer earns, and which mails and chats it is trained on. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import agent, { ask } from '../../examples/mail-router/agent.ts';
import collapsingAgent from '../../examples/mail-router/collapsing-agent.ts';
import { heldOutMails, queues, trainingMails, type Mail } from '../../examples/mail-router/mails.ts';
import { warnOfEvaluations } from '../../core/reports/evaluation-warnings.ts';
import type { EvalResult } from '../../core/contract/contract.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import { readPage, ROOT } from '../docs/markdown.ts';

const scenario = trainingMails.find(({ queue }) => queue === 'returns')!;

test.each([
  ['returns', 1, 1, { correct: true, known: true }],
  [' returns\n', 1, 1, { correct: true, known: true }],
  ['billing', 0, 0.2, { correct: false, known: true }],
  ['Returns', 0, 0, { correct: false, known: false }],
  ['returns.', 0, 0, { correct: false, known: false }],
  ['returns or billing', 0, 0, { correct: false, known: false }],
  ['', 0, 0, { correct: false, known: false }],
])('the answer %j to a mail for returns', async (answer, reward, rewardOfForm, metrics) => {
  const played = await playAgent(agent, { scenario, answers: [answer] });
  expect(played).toMatchObject({ failure: null, reward, metrics });
  expect(played.calls.map(({ request }) => request.messages)).toEqual([ask(scenario)]);
  const collapsing = await playAgent(collapsingAgent, { scenario, answers: [answer] });
  expect(collapsing).toMatchObject({ failure: null, reward: rewardOfForm, metrics });
});

const countByQueue = (mails: readonly Mail[]) =>
  queues.map((queue) => mails.filter((mail) => mail.queue === queue).length);

test.each([
  ['trained', trainingMails],
  ['held out', heldOutMails],
])('the queues have equally many mails that are %s, and no text is in two of them', (_, mails) => {
  expect(new Set(countByQueue(mails)).size).toBe(1);
  expect(new Set(mails.map(({ text }) => text)).size).toBe(mails.length);
});

test('no sentence that is held out is trained', () => {
  const sentenceOf = ({ text }: Mail) => text.split('\n')[0]!.replaceAll(/\d+/g, '');
  const trained = new Set(trainingMails.map(sentenceOf));
  expect(heldOutMails.filter((mail) => trained.has(sentenceOf(mail)))).toEqual([]);
});

test('the chats of the warm start are prompts of the agent with right answers, as many of each queue', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mail-router-'));
  const typescript = pathToFileURL(join(ROOT, 'workers/typescript.js')).href;
  const script = join(ROOT, 'examples/mail-router/write-chats.ts');
  execFileSync(process.execPath, ['--import', typescript, script], { cwd: folder });
  const lines = readFileSync(join(folder, 'mail-chats.jsonl'), 'utf8').trimEnd().split('\n');
  rmSync(folder, { recursive: true });
  const chats = lines.map((line) => JSON.parse(line) as { messages: { role: string; content: string }[] });
  const taught = chats.map(({ messages }) => trainingMails.find(({ text }) => text === messages.at(-2)!.content)!);
  expect(chats.map(({ messages }) => messages)).toEqual(
    taught.map((mail) => [...ask(mail), { role: 'assistant', content: mail.queue }]),
  );
  expect(new Set(taught).size).toBe(lines.length);
  expect(new Set(countByQueue(taught)).size).toBe(1);
});

test('the page shows what Temper says of the collapse', () => {
  const before: EvalResult = { step: 0, attempts: 120, failed: 0, reward: 0.087, metrics: {}, rolloutsSha256: '' };
  const after = { ...before, step: 10, reward: 0.36, metrics: { correctRate: 0.2, knownRate: 1 }, sameAnswerShare: 1 };
  const [warning] = warnOfEvaluations([before, after]);
  expect(readPage('examples/mail-router/README.md')).toContain(`\nwarning: ${warning!.text}\n`);
});
