/** Branches that a run left, beside the one that it is on. */
import type { StepSummary } from '../../core/contract/contract.ts';
import { color, type Chart } from './chart.ts';

export interface LeftBranch {
  readonly branch: number;
  /** Its own steps, without those of the branch that it continued. */
  readonly steps: readonly StepSummary[];
}

/** The reward of each left branch as a line of its own. */
export function addLeftBranches(chart: Chart, left: readonly LeftBranch[]): Chart {
  if (left.length === 0) return chart;
  const x = [...new Set([...chart.x, ...left.flatMap(({ steps }) => steps.map(({ step }) => step))])].toSorted(
    (a, b) => a - b,
  );
  const own = chart.series.map((series) => {
    const spread = (values: readonly (number | null)[]) => spreadOver(x, chart.x, values);
    const interval = series.interval && { low: spread(series.interval.low), high: spread(series.interval.high) };
    return { ...series, values: spread(series.values), ...(interval && { interval }) };
  });
  const others = left.map(({ branch, steps }, index) => ({
    label: `branch ${branch}, left`,
    values: spreadOver(
      x,
      steps.map(({ step }) => step),
      steps.map(({ reward }) => reward),
    ),
    style: 'faint' as const,
    color: color(index + 3),
  }));
  return { ...chart, x, series: [...own, ...others] };
}

function spreadOver(
  x: readonly number[],
  steps: readonly number[],
  values: readonly (number | null)[],
): (number | null)[] {
  const known = new Map(steps.map((step, index) => [step, values[index] ?? null]));
  return x.map((step) => known.get(step) ?? null);
}
