import { expect, test } from 'vitest';
import { KeptAnswers } from '../../../workers/serving/serve-policy.ts';

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
  for (let id = 0; id < 3; id++) kept.set(`${id}`, long(31));
  expect(idsIn(kept, 3)).toEqual(['1', '2']);
  // An answer that is said again under an id takes the room of the one before.
  kept.set('2', long(31));
  expect(idsIn(kept, 3)).toEqual(['1', '2']);
  kept.set('3', long(65));
  expect(idsIn(kept, 4)).toEqual([]);
  kept.set('4', long(1));
  expect(idsIn(kept, 5)).toEqual(['4']);
});
