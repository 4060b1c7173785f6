import { expect, test } from 'vitest';
import { examProblems, grade, question, trainingProblems } from '../../examples/multiplication/problems.ts';

const product = ({ left, right }: { left: number; right: number }) =>
  `${Math.min(left, right)}x${Math.max(left, right)}`;

test('nothing that is asked in the exam is trained on, in either order', () => {
  const trained = new Set(trainingProblems.map(product));
  expect(examProblems.filter((problem) => trained.has(product(problem)))).toEqual([]);
});

test('training and exam together are the whole table', () => {
  const exam = new Set(examProblems.map(({ left, right }) => `${left}x${right}`));
  expect(trainingProblems.length + exam.size).toBe(121);
  expect(exam.size).toBe(30);
  expect(new Set([...trainingProblems, ...examProblems].map(({ id }) => id)).size).toBe(91 + 150);
});

test.each(['left', 'right'] as const)('every number stands in training and exam as the %s operand', (side) => {
  expect(new Set(trainingProblems.map((problem) => problem[side])).size).toBe(11);
  expect(new Set(examProblems.map((problem) => problem[side])).size).toBe(11);
});

test('a question is the bare product', () => {
  expect(question({ id: '7x8', left: 7, right: 8 })).toBe('7*8=');
});

test.each([
  ['56', 1],
  ['056', 0],
  [' 56', 0],
  ['56.', 0],
  ['57', 0],
  ['', 0],
  [null, 0],
] as const)('the answer %j to 7*8 is worth %d', (answer, reward) => {
  expect(grade(answer, { id: '7x8', left: 7, right: 8 })).toBe(reward);
});
