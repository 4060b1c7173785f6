import { expect, test } from 'vitest';
import { mainCharts, planCharts } from '../../../views/charts/charts.ts';
import { findHeldOut } from '../../../views/charts/held-out.ts';
import { metricWords } from '../../../views/charts/metric-words.ts';
import { evaluation, summary } from '../../cli/fixture-store.ts';

test('the result is the first evaluation and the newest, a rate with its interval', () => {
  const evals = [evaluation(0, 0.5, 0.1), evaluation(4, 0.7, 0), evaluation(8, 0.9, 0)];
  const found = findHeldOut({ evals, evalBefore: evals[0]!, evalAfter: evals[2]! })!;
  expect(found.label).toBe('win');
  expect([found.before?.value, found.after?.value, found.after?.evaluation.step]).toEqual([0.5, 0.9, 8]);
  expect(found.after?.interval?.map((bound) => bound.toFixed(3))).toEqual(['0.851', '0.934']);
});

test('a mean reward has the interval that its attempts give; before the first step there is no after', () => {
  const only = { ...evaluation(0, 0.5, 0), metrics: {} };
  const rewards = { 0: [0.1, 0.3] } as const;
  expect(findHeldOut({ evals: [only], evalBefore: only, evalAfter: null }, rewards)).toEqual({
    label: 'reward',
    before: { evaluation: only, value: only.reward, interval: [0.1, 0.3] },
    after: null,
  });
  expect(findHeldOut({ evals: [], evalBefore: null, evalAfter: null })).toBeNull();
});

test('a run that was first evaluated later has no before', () => {
  const later = evaluation(5, 0.5, 0);
  const found = findHeldOut({ evals: [later], evalBefore: null, evalAfter: later });
  expect([found?.before, found?.after?.value]).toEqual([null, 0.5]);
});

test('at most six charts come first, those of the result before all', () => {
  const charts = planCharts([summary(1, 2), summary(2, 2)], [evaluation(0, 0.25, 0), evaluation(2, 0.75, 0)]);
  const main = mainCharts(charts);
  expect(charts.length).toBeGreaterThan(6);
  expect(main.length).toBeLessThanOrEqual(6);
  expect(main.map(({ title }) => title)).toEqual(
    expect.arrayContaining(['Reward', 'Outcomes in training', 'Outcomes on held-out scenarios', 'entropy']),
  );
  expect(mainCharts(main)).toBe(main);
});

test('names of metrics are words', () => {
  expect(['gradNorm', 'pass2RatioK3', 'trainedTokens', 'entropy'].map(metricWords)).toEqual([
    'gradient norm',
    'pass 2, ratio (k3)',
    'trained tokens',
    'entropy',
  ]);
});
