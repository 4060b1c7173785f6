import { expect, test } from 'vitest';
import agent from '../../examples/receipts/agent.ts';
import { examReceipts, makeReceipt, trainingReceipts, type Receipt } from '../../examples/receipts/receipts.ts';
import { playAgent } from '../../sdk/testing/index.ts';

const scenario: Receipt = { id: 'receipt-1', text: 'Nina paid 14 euros.', euros: 14 };

test('a receipt is the same each time, says its amount, and is trained on or in the exam', () => {
  expect(makeReceipt(7)).toEqual(makeReceipt(7));
  const all = [...trainingReceipts, ...examReceipts];
  expect(all.filter(({ text, euros }) => !text.includes(` ${euros} euros`))).toEqual([]);
  const trained = new Set(trainingReceipts.map(({ text }) => text));
  expect(examReceipts.filter(({ text }) => trained.has(text))).toEqual([]);
  expect([trained.size, new Set(examReceipts.map(({ text }) => text)).size]).toEqual([400, 100]);
});

test.each([
  ['14.\n', { correct: true, mentioned: true, words: 1 }, 1],
  ['14 euros', { correct: false, mentioned: true, words: 2 }, 0.6],
  [`14${' and more'.repeat(10)}`, { correct: false, mentioned: true, words: 21 }, 0.1],
  ['140', { correct: false, mentioned: false, words: 1 }, 0],
  ['', { correct: false, mentioned: false, words: 0 }, 0],
])('the answer %j to 14 euros', async (answer, metrics, reward) => {
  const played = await playAgent(agent, { scenario, answers: [answer] });
  expect(played).toMatchObject({ failure: null, metrics });
  expect(played.reward).toBeCloseTo(reward, 12);
  expect(played.calls.map(({ request }) => request.messages)).toEqual([
    [{ role: 'user', content: 'Nina paid 14 euros.\nHow many euros were paid? Answer with the number only.' }],
  ]);
});
