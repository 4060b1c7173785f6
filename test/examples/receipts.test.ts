import { expect, test } from 'vitest';
import agent from '../../examples/receipts/agent.ts';
import type { Receipt } from '../../examples/receipts/receipts.ts';
import { playAgent } from '../../sdk/testing/index.ts';

const scenario: Receipt = { id: 'receipt-1', text: 'Nina paid 14 euros.', euros: 14 };

test.each([
  ['14.\n', { correct: true, mentioned: true, words: 1 }, 1],
  ['14 euros', { correct: false, mentioned: true, words: 2 }, 0.6],
  [`14${' and more'.repeat(10)}`, { correct: false, mentioned: true, words: 21 }, 0.1],
  ['140', { correct: false, mentioned: false, words: 1 }, 0],
])('the answer %j to 14 euros', async (answer, metrics, reward) => {
  const played = await playAgent(agent, { scenario, answers: [answer] });
  expect(played).toMatchObject({ failure: null, metrics });
  expect(played.reward).toBeCloseTo(reward, 12);
  expect(played.calls.map(({ request }) => request.messages)).toEqual([
    [{ role: 'user', content: 'Nina paid 14 euros.\nHow many euros were paid? Answer with the number only.' }],
  ]);
});
