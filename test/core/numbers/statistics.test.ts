import { expect, test } from 'vitest';

import { hasNoVariance, mean, meanMetrics, type Metrics } from '../../../core/numbers/statistics.ts';

test('boolean metrics become rates, numbers stay means, over the attempts that report them', () => {
  const attempts = [{ win: true, moves: 3 }, { win: false, moves: 5, extra: 1 }, { win: true }];
  expect(meanMetrics(attempts)).toEqual({ extra: 1, moves: 4, winRate: 2 / 3 });
});

test('a metric that is sometimes a boolean and sometimes a number is a mean', () => {
  expect(meanMetrics([{ win: true }, { win: 0 }])).toEqual({ win: 0.5 });
});

test('the mean of nothing is none', () => {
  expect(mean([])).toBeNull();
  expect(mean([1, 2])).toBe(1.5);
});

test('equal rewards have no variance', () => {
  expect(hasNoVariance([1, 1, 1])).toBe(true);
  expect(hasNoVariance([1, 0])).toBe(false);
});

test('a metric may be called like anything that objects have', () => {
  const attempts: unknown = [
    { constructor: 1, solved: true },
    { solved: false, toString: 3 },
  ];
  expect(meanMetrics(attempts as Metrics[])).toEqual({ constructor: 1, solvedRate: 0.5, toString: 3 });
});
