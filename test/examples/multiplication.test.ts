import { expect, test } from 'vitest';
import agent from '../../examples/multiplication/agent.ts';
import { playAgent } from '../../sdk/testing/index.ts';

test.each([
  ['56', 1],
  ['056', 0],
  ['57', 0],
] as const)('the answer %j to 7*8 earns %d', async (answer, reward) => {
  const played = await playAgent(agent, { scenario: { id: '7x8', left: 7, right: 8 }, answers: [answer] });
  expect(played).toMatchObject({ reward, metrics: { correct: reward === 1 } });
  expect(played.calls[0]!.request.messages).toEqual([{ role: 'user', content: '7*8=' }]);
});
