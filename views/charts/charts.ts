/** Curves of a report. */
import type { EvalResult, StepSummary } from '../../core/contract/contract.ts';
import { estimateShare, type Estimate } from '../../core/numbers/statistics.ts';
import { isNamedReward } from '../../core/rules/named-rewards.ts';
import { isRate, metricLabel, sortMetrics, valueOf } from '../../core/reports/format.ts';
import { chartSteps, color, type Chart } from './chart.ts';
import { metricWords } from './metric-words.ts';
import { planTrainCharts, type Constant } from './train-charts.ts';

/** Labels of a step's judge metrics. */
const JUDGE_NOTES: Readonly<Record<string, string>> = {
  judgeCalls: 'answers from the judge per step',
  judgeCached: 'cached verdicts per step',
  judgeTokens: 'judge tokens per step, input and output',
  judgeUsd: 'cost of the judge per step, in US dollars',
  agentReward: 'the agent’s own reward, averaged over the attempts of a step',
  rulerScore: 'the judge’s score, averaged over the attempts of a step',
  reviewScore: 'the reviewers’ score, averaged over the attempts of a step',
};
/** `evalRewards`: 95 % interval of each evaluation's mean reward, by its step, where it is known. */
export function planCharts(
  steps: readonly StepSummary[],
  evals: readonly EvalResult[],
  evalRewards: RewardIntervals = {},
): Chart[] {
  if (steps.length === 0) return [];
  const names = sortMetrics(new Set(steps.flatMap((step) => Object.keys(step.metrics))));
  const rates = names.filter(isRate);
  const rewards = names.filter(isNamedReward);
  const others = names.filter((name) => !isRate(name) && !isNamedReward(name));
  return [
    ...(steps.every(({ examples }) => examples !== undefined)
      ? []
      : [rewardChart('reward', steps, evals, evalRewards)]),
    ...rewards.map((name) => rewardChart(name, steps, evals)),
    ...(rates.length > 0 ? [ratesChart(rates, steps)] : []),
    ...(evals.length > 1 && rates.length > 0 ? [evalChart(rates, evals)] : []),
    ...others.map((name) => metricChart(name, steps)),
    ...planTrainCharts(steps).charts,
  ];
}

/** What one looks at first, the most telling of all before the others. */
const MAIN = [
  'Reward',
  'Outcomes on held-out scenarios',
  'Outcomes in training',
  'held-out loss',
  'entropy',
  'Failed, truncated, replaced',
  'Seconds',
  'gradient norm',
  'loss',
];
const MOST_MAIN = 6;

/** At most six of the charts, in their order. */
export function mainCharts(charts: readonly Chart[]): readonly Chart[] {
  if (charts.length <= MOST_MAIN) return charts;
  const chosen = MAIN.filter((title) => charts.some((chart) => chart.title === title)).slice(0, MOST_MAIN);
  return charts.filter(({ title }) => chosen.includes(title));
}

/** Training metrics without a chart, because they never changed. */
export function findConstants(steps: readonly StepSummary[]): Constant[] {
  return planTrainCharts(steps).constant;
}

type RewardIntervals = Readonly<Record<number, readonly [low: number, high: number]>>;

/** The reward, or one of those by name. */
function rewardChart(
  name: string,
  steps: readonly StepSummary[],
  evals: readonly EvalResult[],
  intervals: RewardIntervals = {},
): Chart {
  const x = mergedSteps(steps, evals);
  const rewards = byStep(steps, (step) => valueOf(step, name));
  const smoothed = byStep(smooth(name, steps), ({ value }) => value);
  const held = byStep(evals, (evaluation) => valueOf(evaluation, name));
  return {
    section: 'outcomes',
    title: name === 'reward' ? 'Reward' : name,
    note: `${name === 'reward' ? '' : 'before its weight: '}mean over the attempts of a step, these smoothed (an exponential mean, the newest steps count most), and the held-out evaluations`,
    x,
    series: [
      { label: 'step', values: x.map((step) => rewards.get(step) ?? null), style: 'faint', color: '--faint' },
      { label: 'smoothed', values: x.map((step) => smoothed.get(step) ?? null), style: 'line', color: color(0) },
      {
        label: 'held out',
        values: x.map((step) => held.get(step) ?? null),
        style: 'points',
        color: color(1),
        ...(Object.keys(intervals).length > 0 && {
          interval: {
            low: x.map((step) => intervals[step]?.[0] ?? null),
            high: x.map((step) => intervals[step]?.[1] ?? null),
          },
        }),
      },
    ],
    range: null,
  };
}

/** Running mean of a reward, which is noisy because a group shares its scenario. */
function smooth(name: string, steps: readonly StepSummary[]): { step: number; value: number | null }[] {
  let mean: number | null = null;
  return steps.map((summary) => {
    const reward = valueOf(summary, name);
    if (reward !== null) mean = mean === null ? reward : mean * 0.9 + reward * 0.1;
    return { step: summary.step, value: mean };
  });
}

function ratesChart(rates: readonly string[], steps: readonly StepSummary[]): Chart {
  const plan = {
    section: 'outcomes',
    title: 'Outcomes in training',
    note: 'share of a step’s attempts',
    lines: rates.map((name) => ({ label: metricLabel(name), value: (step: StepSummary) => step.metrics[name] })),
    range: [0, 1],
  } as const;
  return chartSteps(plan, steps);
}

function metricChart(name: string, steps: readonly StepSummary[]): Chart {
  const label = Object.hasOwn(JUDGE_NOTES, name) ? metricWords(name) : metricLabel(name);
  const note = JUDGE_NOTES[name] ?? 'mean over the attempts of a step';
  return chartSteps(
    { section: 'outcomes', title: label, note, lines: [{ label, value: (step) => step.metrics[name] }] },
    steps,
  );
}

function evalChart(rates: readonly string[], evals: readonly EvalResult[]): Chart {
  return {
    section: 'outcomes',
    title: 'Outcomes on held-out scenarios',
    note: 'share of the evaluation’s scenarios, with its 95 % interval',
    x: evals.map(({ step }) => step),
    series: rates.map((name, index) => ({
      label: metricLabel(name),
      values: evals.map((evaluation) => evaluation.metrics[name] ?? null),
      style: 'line',
      color: color(index),
      interval: {
        low: evals.map((evaluation) => boundsOf(evaluation, name)?.low ?? null),
        high: evals.map((evaluation) => boundsOf(evaluation, name)?.high ?? null),
      },
    })),
    range: [0, 1],
  };
}

function boundsOf({ metrics, attempts, failed }: EvalResult, name: string): Estimate | null {
  const [share, played] = [metrics[name], attempts - failed];
  return share === undefined || played <= 0 ? null : estimateShare(share, played);
}

function mergedSteps(steps: readonly StepSummary[], evals: readonly EvalResult[]): number[] {
  const all = [...steps, ...evals].map(({ step }) => step);
  return [...new Set(all)].toSorted((a, b) => a - b);
}

function byStep<T extends { step: number }>(
  items: readonly T[],
  value: (item: T) => number | null,
): Map<number, number | null> {
  return new Map(items.map((item) => [item.step, value(item)]));
}
