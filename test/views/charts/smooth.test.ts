import { expect, test } from 'vitest';
import { addLeftBranches } from '../../../views/charts/branch-series.ts';
import type { Chart } from '../../../views/charts/chart.ts';
import { planCharts } from '../../../views/charts/charts.ts';
import { compareChart, comparedMetrics } from '../../../views/charts/compare-chart.ts';
import { describeChart, smoothChart, smoothValues } from '../../../views/charts/smooth.ts';
import { evaluation, summary } from '../../cli/fixture-store.ts';

const chart = (series: Partial<Chart['series'][number]>[], x = [1, 2, 3]): Chart => ({
  section: 'outcomes',
  title: 'Reward',
  note: '',
  x,
  range: null,
  series: series.map((each) => ({ label: 'reward', values: [0, 1, 0], style: 'line', color: '--series-1', ...each })),
});

test('a running mean starts at the first value and skips missing ones', () => {
  expect(smoothValues([2, null, 4], 0.5)).toEqual([2, null, (2 * 0.25 + 4 * 0.5) / 0.75]);
  expect(smoothValues([3, 3, 3], 0.5)).toEqual([3, 3, 3]);
});

test('a smoothed line keeps itself faintly below; a chart with a faint line replaces its mean', () => {
  const plain = smoothChart(chart([{}]), 0.5).series;
  expect(plain.map(({ label, style }) => [label, style])).toEqual([
    ['reward, raw', 'faint'],
    ['reward', 'line'],
  ]);
  const raw = { label: 'step', style: 'faint', values: [0, 4, 0] } as const;
  const held = { label: 'held out', style: 'points', values: [1, null, 1] } as const;
  const smooth = smoothChart(chart([raw, { label: 'running mean', values: [9, 9, 9] }, held]), 0.5).series;
  expect(smooth.map(({ label }) => label)).toEqual(['step', 'running mean', 'held out']);
  expect(smooth[1]!.values).toEqual(smoothValues(raw.values, 0.5));
  expect(smooth[2]!.values).toEqual(held.values);
  expect(smoothChart(chart([{}]), 0)).toEqual(chart([{}]));
});

test('a chart in words says where each line begins and ends', () => {
  const shown = chart([
    {},
    { label: 'held out', values: [null, 0.5, null] },
    { label: 'none', values: [null, null, null] },
  ]);
  expect(describeChart(shown, String)).toBe('Reward: reward from 0 at step 1 to 0 at step 3; held out 0.5 at step 2');
});

test('left branches are lines of their own, and widen the axis', () => {
  const left = [{ branch: 0, steps: [summary(3, 4), summary(4, 4)] }];
  const { x, series } = addLeftBranches(chart([{}]), left);
  expect(x).toEqual([1, 2, 3, 4]);
  expect(series.map(({ values }) => values)).toEqual([
    [0, 1, 0, null],
    [null, null, summary(3, 4).reward, summary(4, 4).reward],
  ]);
  expect(series[1]!.label).toBe('branch 0, left');
});

test('runs are compared by step, over all steps of any', () => {
  const curves = [
    { run: 'a', steps: [summary(1, 3), summary(2, 3)] },
    { run: 'b', steps: [summary(2, 3), summary(3, 3)] },
  ];
  expect(comparedMetrics(curves)[0]).toBe('reward');
  const { x, series } = compareChart(curves, 'reward');
  expect(x).toEqual([1, 2, 3]);
  expect(series.map(({ label, values }) => [label, values[0], values[2]])).toEqual([
    ['a', summary(1, 3).reward, null],
    ['b', null, summary(3, 3).reward],
  ]);
});

test('evaluations have the interval of their share, and of their reward where it is known', () => {
  const charts = planCharts([summary(1, 2), summary(2, 2)], [evaluation(0, 0.25, 0), evaluation(2, 0.75, 0)], {
    2: [0.1, 0.9],
  });
  const reward = charts.find(({ title }) => title === 'Reward')!.series.find(({ label }) => label === 'held out')!;
  expect(reward.interval).toEqual({ low: [null, null, 0.1], high: [null, null, 0.9] });
  const win = charts.find(({ title }) => title === 'Outcomes on held-out scenarios')!.series[0]!;
  expect(win.values).toEqual([0.25, 0.75]);
  expect(win.interval!.low[0]).toBeLessThan(0.25);
  expect(win.interval!.high[1]).toBeGreaterThan(0.75);
});
