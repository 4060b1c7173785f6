import { playAgent } from 'temper-rl/testing';
import { expect, test } from 'vitest';
import agent from './agent.ts';

const scenario = { id: '7x8', left: 7, right: 8 };

test('asks for the product', async () => {
  const { calls } = await playAgent(agent, { scenario, answers: ['56'] });
  expect(calls[0]?.request.messages).toEqual([{ role: 'user', content: '7*8=' }]);
});

test.each([
  ['56', 1],
  ['15', 0],
  ['fifty-six', 0],
])('the answer %s earns %i', async (answer, reward) => {
  expect(await playAgent(agent, { scenario, answers: [answer] })).toMatchObject({ reward, failure: null });
});
