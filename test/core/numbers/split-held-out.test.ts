import { expect, test } from 'vitest';
import { drawSample, splitHeldOut } from '../../../core/numbers/split-held-out.ts';

/** `1a`: stratum 1. */
const items = Array.from('abcdefghij').flatMap((name) => [`1${name}`, `2${name}`, ...(name < 'e' ? [`3${name}`] : [])]);
const split = (count: number, seed = 1) => splitHeldOut(items, { count, seed, stratumOf: (item) => Number(item[0]) });
const countOf = (list: readonly string[], stratum: number) =>
  list.filter((item) => item.startsWith(String(stratum))).length;

test('both parts have every stratum in its proportion, in the order of the items', () => {
  const { train, heldOut } = split(12);
  expect([1, 2, 3].map((stratum) => countOf(heldOut, stratum))).toEqual([5, 5, 2]);
  expect([...train, ...heldOut].toSorted()).toEqual(items.toSorted());
  expect(heldOut).toEqual(items.filter((item) => heldOut.includes(item)));
});

test('a sample depends on the ids alone: a smaller one is part of it, and a list that is sorted by label gives all labels', () => {
  const ids = items.toSorted();
  const drawn = (list: readonly string[], count: number) => drawSample(list, count).map((index) => list[index]!);
  expect(drawn(ids, 12).toSorted()).toEqual(drawn(ids.toReversed(), 12).toSorted());
  expect(drawn(ids, 12)).toEqual(expect.arrayContaining(drawn(ids, 6)));
  expect(drawn(ids, 12)).toEqual(ids.filter((id) => drawn(ids, 12).includes(id)));
  expect([1, 2, 3].map((label) => countOf(drawn(ids, 12), label)).every((count) => count > 0)).toBe(true);
  expect(drawn(ids, 99)).toEqual(ids);
});

test('a sample that is spread takes the values in turn, as far as each has some', () => {
  const labels = items.map((item) => item[0]!);
  const drawn = (count: number) => drawSample(items, count, labels).map((index) => items[index]!);
  const counts = (count: number) => [1, 2, 3].map((label) => countOf(drawn(count), label));
  expect([counts(3), counts(6), counts(12), counts(20), counts(24)]).toEqual([
    [1, 1, 1],
    [2, 2, 2],
    [4, 4, 4],
    [8, 8, 4],
    [10, 10, 4],
  ]);
  expect(drawn(12)).toEqual(expect.arrayContaining(drawn(6)));
});

test('the count is exact where proportions are no whole numbers', () => {
  for (const count of [1, 2, 3, 5, 7, 23]) expect(split(count).heldOut).toHaveLength(count);
});

test('the same seed draws the same items, another seed others', () => {
  expect(split(8)).toEqual(split(8));
  expect(split(8, 2).heldOut).not.toEqual(split(8).heldOut);
});
