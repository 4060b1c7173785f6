import { expect, onTestFinished, test } from 'vitest';
import agent from '../../examples/receipts/agent.ts';
import { grade } from '../../examples/receipts/grade.ts';
import { examReceipts, makeReceipt, trainingReceipts, type Receipt } from '../../examples/receipts/receipts.ts';
import type { RolloutContext, RolloutResult } from '../../play/agent.ts';
import { startFakeEngine } from '../fake-engine.ts';
import { playOne } from '../play/play.ts';

const receipt: Receipt = { id: 'receipt-1', text: 'Nina paid 14 euros.', euros: 14 };

test('a receipt is the same each time, and says its amount', () => {
  expect(makeReceipt(7)).toEqual(makeReceipt(7));
  const all = [...trainingReceipts, ...examReceipts];
  expect(all.filter(({ text, euros }) => !text.includes(` ${euros} euros`))).toEqual([]);
});

test('no receipt of the exam is trained on', () => {
  const trained = new Set(trainingReceipts.map(({ text }) => text));
  expect(examReceipts.filter(({ text }) => trained.has(text))).toEqual([]);
  expect([trained.size, new Set(examReceipts.map(({ text }) => text)).size]).toEqual([400, 100]);
});

test.each([
  ['14', { reward: 1, correct: true, mentioned: true, words: 1 }],
  ['14.\n', { reward: 1, correct: true, mentioned: true, words: 1 }],
  ['14 euros', { reward: 0.6, correct: false, mentioned: true, words: 2 }],
  ['Nina paid 14 euros.', { reward: 0.5, correct: false, mentioned: true, words: 4 }],
  [`14${' and more'.repeat(10)}`, { reward: 0.1, correct: false, mentioned: true, words: 21 }],
  ['140', { reward: 0, correct: false, mentioned: false, words: 1 }],
  ['fourteen', { reward: 0, correct: false, mentioned: false, words: 1 }],
  ['', { reward: 0, correct: false, mentioned: false, words: 0 }],
])('the answer %j to 14 euros', (answer, expected) => {
  expect(grade(answer, receipt)).toEqual({ ...expected, reward: expect.closeTo(expected.reward, 12) as number });
});

test('the agent asks once, with the receipt, and tells what the answer was', async () => {
  const engine = await startFakeEngine({ answer: () => '14 euros' });
  onTestFinished(() => engine.close());
  const rollout = (context: RolloutContext) =>
    agent.rollout(context as RolloutContext<Receipt>) as Promise<RolloutResult>;
  const attempt = await playOne(engine, rollout, { scenario: receipt });
  expect(attempt).toMatchObject({ failure: null, reward: 0.6, metrics: { correct: false, mentioned: true, words: 2 } });
  expect(engine.executed.map(({ request }) => request.messages)).toEqual([
    [{ role: 'user', content: 'Nina paid 14 euros.\nHow many euros were paid? Answer with the number only.' }],
  ]);
});
