import { expect, test } from 'vitest';

import { draw } from './tier.ts';

const LETTERS = Array.from({ length: 26 }, (_, index) => String.fromCharCode(97 + index));
const drawn = (seed: string, count = 2) => draw(LETTERS, count, (letter) => letter, seed);

test('the same tree draws the same items, each once', () => {
  expect(drawn('tree')).toEqual(drawn('tree'));
  expect(new Set(drawn('tree', 26)).size).toBe(26);
  expect(drawn('tree', 99)).toHaveLength(26);
});

test('some two hundred trees draw every item', () => {
  const met = new Set(Array.from({ length: 200 }, (_, tree) => drawn(`${tree}`)).flat());
  expect([...met].toSorted()).toEqual(LETTERS);
});
