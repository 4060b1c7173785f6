import { expect, test } from 'vitest';
import agent from '../../examples/multiplication/agent.ts';
import { examProblems, trainingProblems, type Problem } from '../../examples/multiplication/problems.ts';
import { playAgent } from '../../sdk/testing/index.ts';

test('training and exam together are the whole table, and no product of the exam is trained on in either order', () => {
  const product = ({ left, right }: Problem) => [left, right].toSorted((a, b) => a - b).join('x');
  const trained = new Set(trainingProblems.map(product));
  expect(examProblems.filter((problem) => trained.has(product(problem)))).toEqual([]);
  expect(new Set([...trainingProblems, ...examProblems].map(({ left, right }) => `${left}x${right}`)).size).toBe(121);
  for (const side of ['left', 'right'] as const)
    for (const problems of [trainingProblems, examProblems])
      expect(new Set(problems.map((problem) => problem[side])).size).toBe(11);
});

test.each([
  ['56', 1],
  ['056', 0],
  [' 56', 0],
  ['57', 0],
  ['', 0],
] as const)('the answer %j to 7*8 earns %d', async (answer, reward) => {
  const played = await playAgent(agent, { scenario: { id: '7x8', left: 7, right: 8 }, answers: [answer] });
  expect(played).toMatchObject({ reward, metrics: { correct: reward === 1 } });
  expect(played.calls[0]!.request.messages).toEqual([{ role: 'user', content: '7*8=' }]);
});
