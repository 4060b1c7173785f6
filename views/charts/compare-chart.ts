/** One metric of several runs in one chart. */
import type { StepSummary } from '../../core/contract/contract.ts';
import { metricLabel, sortMetrics, valueOf } from '../../core/reports/format.ts';
import { color, type Chart } from './chart.ts';
import { metricWords } from './metric-words.ts';

interface Curve {
  readonly run: string;
  readonly steps: readonly StepSummary[];
}

/** Metrics of the trainer that are worth comparing, after those of the attempts. */
const TRAINED: readonly string[] = ['entropy', 'kl', 'gradNorm', 'loss', 'heldOutLoss', 'logprobK3', 'sampledTokens'];

/** Metrics of any of the runs, the reward first. */
export function comparedMetrics(curves: readonly Curve[]): string[] {
  const steps = curves.flatMap((curve) => curve.steps);
  const metrics = sortMetrics(new Set(steps.flatMap((step) => Object.keys(step.metrics))));
  const trained = TRAINED.filter((name) => steps.some(({ train }) => train[name] !== undefined));
  return ['reward', ...metrics, ...trained, 'seconds'];
}

/** Names that an agent chose stay as they are. */
export function comparedLabel(metric: string): string {
  return TRAINED.includes(metric) ? metricWords(metric) : metricLabel(metric);
}

export function compareChart(curves: readonly Curve[], metric: string): Chart {
  const x = [...new Set(curves.flatMap(({ steps }) => steps.map(({ step }) => step)))].toSorted((a, b) => a - b);
  return {
    section: 'outcomes',
    title: comparedLabel(metric),
    note: `${metric === 'seconds' ? 'wall time of a step' : comparedLabel(metric)} by step, for each run`,
    x,
    series: curves.map(({ run, steps }, index) => {
      const values = new Map(steps.map((step) => [step.step, measure(step, metric)]));
      return { label: run, values: x.map((step) => values.get(step) ?? null), style: 'line', color: color(index) };
    }),
    range: null,
  };
}

function measure(step: StepSummary, metric: string): number | null {
  if (metric === 'seconds') return step.seconds['step'] ?? null;
  return valueOf(step, metric) ?? step.train[metric] ?? null;
}
