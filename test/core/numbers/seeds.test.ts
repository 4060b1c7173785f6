import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';

import { callSeed, createRandom, deriveSeed, shuffle } from '../../../core/numbers/seeds.ts';

const PLACE = { seed: 1, branch: 0, step: 2, scenario: 3, attempt: 4, key: 'k', occurrence: 0 };

test('a call seed is the first 48 bits of the hash of its place', () => {
  const hash = createHash('sha256').update('[1,0,2,3,4,"k",0]').digest('hex');
  expect(callSeed(PLACE)).toBe(Number.parseInt(hash.slice(0, 12), 16));
  expect(callSeed(PLACE)).toBeLessThan(2 ** 48);
});

test('every part of the place changes the seed', () => {
  const changed = Object.keys(PLACE).map((part) => callSeed({ ...PLACE, [part]: part === 'key' ? 'l' : 9 }));
  expect(new Set([callSeed(PLACE), ...changed]).size).toBe(Object.keys(PLACE).length + 1);
});

test('random numbers repeat for a seed, and lie evenly in [0, 1)', () => {
  const draw = (seed: number): number[] => Array.from({ length: 1000 }, createRandom(seed));
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
  const drawn = draw(deriveSeed(['x']));
  expect(Math.min(...drawn)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...drawn)).toBeLessThan(1);
  expect(drawn.reduce((sum, value) => sum + value, 0) / 1000).toBeCloseTo(0.5, 1);
});

test('a shuffle has the same items, in an order that its seed alone decides', () => {
  const items = Array.from({ length: 20 }, (_, index) => index);
  expect(shuffle(items, 7)).toEqual(shuffle(items, 7));
  expect(shuffle(items, 7)).not.toEqual(shuffle(items, 8));
  expect(shuffle(items, 7).toSorted((a, b) => a - b)).toEqual(items);
});
