import { expect, test } from 'vitest';
import { grade, products, question } from './products.ts';

const product = { id: '7x8', left: 7, right: 8 };

test('a question is the bare product, and no two are the same', () => {
  expect(question(product)).toBe('7*8=');
  expect(new Set(products.map(question)).size).toBe(products.length);
});

test.each([
  ['56', 1],
  ['15', 0],
  [null, 0],
])('the answer %s earns %i', (answer, reward) => {
  expect(grade(answer, product)).toBe(reward);
});
