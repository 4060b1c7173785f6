import { expect, test } from 'vitest';
import { grade, heldOutProblems, question, trainingProblems } from '../../examples/multiplication/problems.ts';

test('nothing that is asked in the exam is trained on', () => {
  const trained = new Set(trainingProblems.map((problem) => problem.id));
  expect(heldOutProblems.filter((problem) => trained.has(problem.id))).toEqual([]);
  expect(trainingProblems.length + heldOutProblems.length).toBe(121);
  expect(heldOutProblems.length).toBeGreaterThan(20);
});

test('every row and every column of the table is trained', () => {
  for (const side of ['left', 'right'] as const) {
    expect(new Set(trainingProblems.map((problem) => problem[side])).size).toBe(11);
  }
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
