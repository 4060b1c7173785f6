import { expect, test } from 'vitest';
import { KeptAnswers } from '../../../workers/serving/kept-answers.ts';

const MIB = 1024 ** 2;
const idsIn = (kept: KeptAnswers, count: number) =>
  Array.from({ length: count }, (_, index) => `${index}`).filter((id) => kept.get(id) !== undefined);

test('the newest answers are kept, and no more than a bound', () => {
  const kept = new KeptAnswers();
  for (let id = 0; id < 700; id++) kept.set(`${id}`, [{ id }]);
  expect(idsIn(kept, 700)).toEqual(Array.from({ length: 500 }, (_, index) => `${index + 200}`));
});

test('long conversations are kept for less, and one that is longer than all that may be kept is not', () => {
  const kept = new KeptAnswers();
  const long = (mib: number) => [{ content: 'x'.repeat(mib * MIB) }];
  for (let id = 0; id < 8; id++) kept.set(`${id}`, long(15));
  expect(idsIn(kept, 8)).toEqual(['4', '5', '6', '7']);
  // An answer that is said again under an id takes the room of the one before.
  for (let again = 0; again < 8; again++) kept.set('7', long(15));
  expect(idsIn(kept, 8)).toEqual(['4', '5', '6', '7']);
  kept.set('8', long(65));
  expect(idsIn(kept, 9)).toEqual([]);
  kept.set('9', long(15));
  expect(idsIn(kept, 10)).toEqual(['9']);
});
