import { expect, test } from 'vitest';

import { findConstants, planCharts } from '../../views/charts/charts.ts';
import { chooseStepMetrics, metricWords } from '../../views/charts/metric-words.ts';
import { evaluation, summary } from './fixture-store.ts';

/** Steps as the trainer told of them: what there was none of has no name. */
function stepsWith(...trained: Record<string, number>[]) {
  return trained.map((train, index) => {
    const step = summary(index + 1, trained.length);
    return { ...step, train: { ...step.train, ...train } };
  });
}

/** Columns of the table of steps that not every run has. */
function stepColumns(trained: Record<string, number>[]): string[] {
  return chooseStepMetrics(stepsWith(...trained)).map(metricWords);
}

test('the table of steps counts what happened to rows, where it happened', () => {
  const names = ['truncated', 'forks', 'histories', 'rewarded turns'];
  expect(stepColumns([{ truncated: 0, forks: 0 }]).filter((head) => names.includes(head))).toEqual([]);
  const heads = stepColumns([
    { truncated: 0, forks: 2 },
    { truncated: 1, forks: 0, histories: 3, rewardedTurns: 4 },
  ]);
  expect(heads.filter((head) => names.includes(head))).toEqual(names);
});

test('a step that does not name a rare counter had none of it', () => {
  const charts = planCharts(stepsWith({}, { histories: 3 }, { histories: 3 }), []);
  expect(charts.find(({ title }) => title === 'histories')?.series[0]?.values).toEqual([0, 3, 3]);
  expect(charts.find(({ title }) => title === 'rewarded turns')).toBeUndefined();
});

test('each reward by name has a curve like the reward’s, with the held-out evaluations', () => {
  const named = (short: number) => ({ 'reward/hitRate': 0.5, 'reward/short': short });
  const steps = stepsWith({}, {}).map((step, index) => ({ ...step, metrics: { ...step.metrics, ...named(index) } }));
  const held = { ...evaluation(2, 0.9, 0), metrics: { 'reward/short': 0.7 } };
  const charts = planCharts(steps, [held]);
  expect(charts.slice(0, 3).map(({ title }) => title)).toEqual(['Reward', 'reward/hitRate', 'reward/short']);
  expect(charts[2]?.note).toContain('before its weight');
  expect(charts[2]?.series.map(({ label, values }) => [label, values])).toEqual([
    ['step', [0, 1]],
    ['smoothed', [0, 0.1]],
    ['held out', [null, 0.7]],
  ]);
  expect(charts.find(({ title }) => title === 'Outcomes in training')?.series.map(({ label }) => label)).not.toContain(
    'reward/hit',
  );
});

/** Metrics that a trainer tells of a step with two passes over what an older checkpoint sampled. */
const NAMES = [
  'loss gradNorm entropy kl advantageMass rewardMean rewardStd rewardMin rewardMax heldOutLoss',
  'logprobK3 maxAbsLogRatio clippedShare correctedShare staleness updates',
  'pass1RatioK3 pass1MaxAbsLogRatio pass1ClippedShare pass2RatioK3 pass2MaxAbsLogRatio pass2ClippedShare',
  'groups attempts failed truncated overlong oneSidedGroups rows forks histories rewardedTurns packedAsRows',
  'sampledTokens trainedTokens computedTokens sharedTokens unheardOf',
].flatMap((line) => line.split(' '));
const all = (value: number) => Object.fromEntries(NAMES.map((name) => [name, value]));

test('every number of training has its line in a chart, and one that never changes is named with its value', () => {
  const moving = stepsWith(all(1), all(2));
  const lines = planCharts(moving, []).flatMap(({ series }) => series.map(({ label }) => label));
  const told = [...lines, ...findConstants(moving).map(({ name }) => name)];
  expect(NAMES.filter((name) => !told.includes(metricWords(name)))).toEqual([]);
  const words = ['reward deviation', 'pass 2, ratio (k3)', 'unheard of', 'updates', 'shared tokens'];
  expect(lines).toEqual(expect.arrayContaining(words));
  const still = stepsWith(all(1), all(1));
  expect(findConstants(still)).toEqual(expect.arrayContaining([{ name: 'unheard of', value: 1 }]));
  expect(planCharts(still, []).map(({ title }) => title)).not.toContain('unheard of');
});

test('an older sampler from the second step on is a curve from 0, and a column of the table', () => {
  const trained = [{}, { staleness: 1 }, { staleness: 1 }];
  const chart = planCharts(stepsWith(...trained), []).find(({ title }) => title === 'staleness');
  expect(chart?.series[0]?.values).toEqual([0, 1, 1]);
  expect(stepColumns(trained)).toContain('staleness');
});

test('seconds of all phases are drawn: those of the run, of the judge, of the trainer', () => {
  const seconds = { rollout: 1, 'rollout.judge': 1, judge: 1, wait: 1, train: 1, step: 5 };
  const ofTrainer = { 'trainer.load': 1, 'trainer.wait': 1, 'trainer.train': 1, 'trainer.commit': 1 };
  const steps = stepsWith({}, {}).map((step, index) => ({
    ...step,
    seconds: { ...seconds, ...ofTrainer, 'trainer.train': index, step: 5 + index },
  }));
  const charts = planCharts(steps, []).filter(({ title }) => title.startsWith('Seconds'));
  const drawn = charts.map(({ series }) => series.map(({ label }) => label));
  expect(drawn).toEqual([Object.keys(seconds), Object.keys(ofTrainer)]);
});
