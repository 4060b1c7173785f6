/** Which curves a report draws, as columns that the page hands to uPlot. */
import type { EvalResult, StepSummary } from '../../core/contract.ts';
import { metricLabel, sortMetrics } from '../terminal/format.ts';

export interface Chart {
  readonly title: string;
  readonly note: string;
  readonly x: readonly number[];
  readonly series: readonly Series[];
  /** Fixed for shares, so that two reports can be compared by eye. */
  readonly range: readonly [number, number] | null;
}

interface Series {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** `points` are measurements far apart (evaluations), `faint` is the raw line under its mean. */
  readonly style: 'line' | 'faint' | 'points';
  /** A variable of the style sheet, so that light and dark pages each have their own. */
  readonly color: string;
}

const COLORS = 6;
const color = (index: number): string => `--series-${(index % COLORS) + 1}`;

/** What the trainer's metrics mean, the most telling first; others follow under their own names. */
const TRAIN_NOTES: Readonly<Record<string, string>> = {
  heldOutLoss: 'of held-out examples, in nats per token',
  entropy: 'nats per sampled token',
  gradNorm: 'norm of the gradient before clipping',
  logprobK3: 'sampler versus trainer before the update; 0 is an exact match',
  maxAbsLogRatio: 'largest |log ratio| of sampler and trainer',
  clippedShare: 'share of tokens whose ratio was clipped',
  correctedShare: 'share of tokens that a correction truncated or left out',
  staleness: 'optimizer steps between the sampler and the policy that was trained',
  kl: 'divergence from the reference',
  loss: 'of the step',
  advantageMass: 'mean |advantage|',
  forks: 'rows started because a conversation’s history was rewritten',
  histories: 'rows started by additional conversations of an attempt: sub-agents, compacted contexts',
  rewardedTurns: 'turns with a reward of their own',
  truncated: 'attempts cut off at their token limit',
  oneSidedGroups: 'groups in which a mask left only attempts on one side of the mean',
  trainedTokens: 'sampled tokens used for training',
  sharedTokens: 'tokens computed once for several rows',
  computedTokens: 'tokens that the trainer computed, padding included',
};
/** What a step's judging came to, in all. */
const JUDGE_NOTES: Readonly<Record<string, string>> = {
  judgeCalls: 'answers from the judge per step',
  judgeCached: 'cached verdicts per step',
  judgeTokens: 'judge tokens per step, input and output',
  judgeUsd: 'cost of the judge per step, in US dollars',
  agentReward: 'the agent’s own reward, averaged over the attempts of a step',
  rulerScore: 'the judge’s score, averaged over the attempts of a step',
};
/** Shown elsewhere on the page. */
const REDUNDANT: readonly string[] = [
  'rewardMean',
  'sampledTokens',
  'attempts',
  'groups',
  'examples',
  'heldOutExamples',
  'heldOutLossBefore',
];
/** Measured now and then. */
const POINTS: readonly string[] = ['heldOutLoss'];

const MAX_TRAIN_CHARTS = 9;
/** A step that has none of them does not name them. */
const RARE: readonly string[] = ['histories', 'rewardedTurns', 'oneSidedGroups'];

export function planCharts(steps: readonly StepSummary[], evals: readonly EvalResult[]): Chart[] {
  if (steps.length === 0) return [];
  const names = sortMetrics(new Set(steps.flatMap((step) => Object.keys(step.metrics))));
  const rates = names.filter((name) => name.endsWith('Rate'));
  const others = names.filter((name) => !name.endsWith('Rate'));
  return [
    ...(steps.every(({ examples }) => examples !== undefined) ? [] : [rewardChart(steps, evals)]),
    ...(rates.length > 0 ? [ratesChart(rates, steps)] : []),
    ...(evals.length > 1 && rates.length > 0 ? [evalChart(rates, evals)] : []),
    ...others.map((name) =>
      lineChart(
        metricLabel(name),
        JUDGE_NOTES[name] ?? 'mean over the attempts of a step',
        steps,
        (step) => step.metrics[name],
      ),
    ),
    ...trainCharts(steps),
    ...derivedCharts(steps),
    secondsChart(steps),
  ];
}

function rewardChart(steps: readonly StepSummary[], evals: readonly EvalResult[]): Chart {
  const x = mergedSteps(steps, evals);
  const rewards = byStep(steps, (step) => step.reward);
  const smoothed = byStep(smooth(steps), ({ value }) => value);
  const held = byStep(evals, (evaluation) => evaluation.reward);
  return {
    title: 'Reward',
    note: 'mean over the attempts of a step, the running mean of these, and the held-out evaluations',
    x,
    series: [
      { label: 'step', values: x.map((step) => rewards.get(step) ?? null), style: 'faint', color: '--faint' },
      { label: 'running mean', values: x.map((step) => smoothed.get(step) ?? null), style: 'line', color: color(0) },
      { label: 'held out', values: x.map((step) => held.get(step) ?? null), style: 'points', color: color(1) },
    ],
    range: null,
  };
}

/** A batch's reward jumps, because a group shares its scenario: a running mean shows where it goes. */
function smooth(steps: readonly StepSummary[]): { step: number; value: number | null }[] {
  let mean: number | null = null;
  return steps.map(({ step, reward }) => {
    if (reward !== null) mean = mean === null ? reward : mean * 0.9 + reward * 0.1;
    return { step, value: mean };
  });
}

function ratesChart(rates: readonly string[], steps: readonly StepSummary[]): Chart {
  return {
    title: 'Outcomes in training',
    note: 'share of a step’s attempts',
    x: steps.map(({ step }) => step),
    series: rates.map((name, index) => ({
      label: metricLabel(name),
      values: steps.map((step) => step.metrics[name] ?? null),
      style: 'line',
      color: color(index),
    })),
    range: [0, 1],
  };
}

function evalChart(rates: readonly string[], evals: readonly EvalResult[]): Chart {
  return {
    title: 'Outcomes on held-out scenarios',
    note: 'share of the evaluation’s scenarios',
    x: evals.map(({ step }) => step),
    series: rates.map((name, index) => ({
      label: metricLabel(name),
      values: evals.map((evaluation) => evaluation.metrics[name] ?? null),
      style: 'line',
      color: color(index),
    })),
    range: [0, 1],
  };
}

function trainCharts(steps: readonly StepSummary[]): Chart[] {
  const names = new Set(steps.flatMap((step) => Object.keys(step.train)));
  const known = Object.keys(TRAIN_NOTES).filter((name) => names.has(name));
  const others = [...names].filter((name) => !known.includes(name) && !REDUNDANT.includes(name)).toSorted();
  // A number that never moves tells nothing.
  const value = ({ train }: StepSummary, name: string) => train[name] ?? (RARE.includes(name) ? 0 : null);
  const moves = (name: string) => new Set(steps.flatMap((step) => value(step, name) ?? [])).size > 1;
  const moving = [...known, ...others].filter(moves);
  const charts = moving
    .slice(0, MAX_TRAIN_CHARTS)
    .map((name) => lineChart(name, TRAIN_NOTES[name] ?? 'reported by the trainer', steps, (step) => value(step, name)));
  return [...charts, lineChart('learning rate', 'of the optimizer', steps, (step) => step.learningRate)];
}

/** What recorded numbers come to. */
function derivedCharts(steps: readonly StepSummary[]): Chart[] {
  const masked = ({ train: { sampledTokens, trainedTokens } }: StepSummary) =>
    sampledTokens && typeof trainedTokens === 'number' ? 1 - trainedTokens / sampledTokens : null;
  const truncated = ({ truncatedAttempts = 0, attempts }: StepSummary) =>
    attempts === 0 ? null : truncatedAttempts / attempts;
  const rate = ({ sampledTokens, seconds: { step } }: StepSummary) => (step ? sampledTokens / step : null);
  const charts = [
    lineChart('truncated share', 'of a step’s attempts, replaced and untrained groups included', steps, truncated),
    lineChart('masked share', 'of the sampled tokens of trained groups', steps, masked),
    lineChart('tokens/s', 'sampled tokens per second of a step', steps, rate),
  ];
  return charts.filter(({ series }) => series.some(({ values }) => values.some((value) => value)));
}

function secondsChart(steps: readonly StepSummary[]): Chart {
  // The trainer's own split of its share stands in the store.
  const all = new Set(steps.flatMap((step) => Object.keys(step.seconds)));
  const names = [...all].filter((name) => !name.includes('.')).toSorted();
  return {
    title: 'Seconds',
    note: 'where a step’s wall time goes',
    x: steps.map(({ step }) => step),
    series: names.map((name, index) => ({
      label: name,
      values: steps.map((step) => step.seconds[name] ?? null),
      style: 'line',
      color: color(index),
    })),
    range: null,
  };
}

function lineChart(
  title: string,
  note: string,
  steps: readonly StepSummary[],
  value: (step: StepSummary) => number | null | undefined,
): Chart {
  const values = steps.map((step) => value(step) ?? null);
  return {
    title,
    note,
    x: steps.map(({ step }) => step),
    series: [{ label: title, values, style: POINTS.includes(title) ? 'points' : 'line', color: color(0) }],
    range: null,
  };
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
