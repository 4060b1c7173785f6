import { expect, test } from 'vitest';

import { iterateDataset } from '../../../sdk/index.ts';

const DATA = Array.from({ length: 10 }, (_, index) => index);
const OPTIONS = { groupsPerStep: 4, numEpochs: 2 };

test('every epoch has each item once, in an order of its own', () => {
  const batches = [...iterateDataset(DATA, OPTIONS)];
  expect(batches.map(({ step, epoch, epochStep, items }) => [step, epoch, epochStep, items.length])).toEqual([
    [0, 0, 0, 4],
    [1, 0, 1, 4],
    [2, 0, 2, 2],
    [3, 1, 0, 4],
    [4, 1, 1, 4],
    [5, 1, 2, 2],
  ]);
  const [first, second] = [0, 1].map((of) => batches.filter(({ epoch }) => epoch === of).flatMap(({ items }) => items));
  expect(first!.toSorted((a, b) => a - b)).toEqual(DATA);
  expect(second!.toSorted((a, b) => a - b)).toEqual(DATA);
  expect(second).not.toEqual(first);
});

test('who begins later gets the same batches', () => {
  const all = [...iterateDataset(DATA, OPTIONS)];
  expect([...iterateDataset(DATA, { ...OPTIONS, initialStep: 4 })]).toEqual(all.slice(4));
  expect([...iterateDataset(DATA, { ...OPTIONS, initialStep: 6 })]).toEqual([]);
  expect([...iterateDataset(DATA, { ...OPTIONS, seed: 2 })]).not.toEqual(all);
});

test('an empty data set has no batch, and a size below one is refused', () => {
  expect([...iterateDataset([], OPTIONS)]).toEqual([]);
  expect(() => [...iterateDataset(DATA, { groupsPerStep: 0 })]).toThrow(/groupsPerStep.*at least 1, got 0/);
});
