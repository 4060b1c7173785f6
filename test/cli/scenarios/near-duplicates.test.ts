import { expect, test } from 'vitest';
import { findDistinct, fingerprint, isNearDuplicate } from '../../../cli/scenarios/near-duplicates.ts';

const areAlike = (left: string, right: string) => isNearDuplicate(fingerprint(left), fingerprint(right));

const LONG =
  'Find all invoices of the customer Miller that are overdue, add up their amounts, and write a friendly reminder with the sum and the oldest date.';

test('case, punctuation, spaces and forms of Unicode make no difference', () => {
  expect(areAlike('What is the capital of  France?', 'what is the capital of France')).toBe(true);
  expect(areAlike('Ｓum up the café visits', 'sum up the cafe\u0301 visits')).toBe(true);
});

test('a long text with one word changed repeats the other, one with half of its words changed does not', () => {
  expect(areAlike(LONG, LONG.replace('friendly', 'polite'))).toBe(true);
  expect(areAlike(LONG, LONG.replace(/write.*/, 'show them as a table that is sorted by the name of the city'))).toBe(
    false,
  );
});

test.each([
  ['What is 12 plus 30?', 'What is 12 plus 31?'],
  ['7*8=', '8*7='],
  ['What is BOR?', 'What is KEL?'],
  [LONG, `${LONG} Do not go further back than 2024.`],
])('%s and %s are different tasks', (left, right) => {
  expect(areAlike(left, right)).toBe(false);
});

test('of texts that repeat each other the first is kept, and none that repeats a known one', () => {
  const proposed = ['List the open tickets', 'list the open tickets!', 'Close ticket 3', 'Close ticket 4'];
  expect(findDistinct(proposed, ['Close ticket 4.'])).toEqual([0, 2]);
});

test('texts without any word are compared as well', () => {
  expect(findDistinct(['…', '?', ''], [])).toEqual([0]);
});
