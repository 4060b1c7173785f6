/** What is compared between models, in the order in which people ask for it: the rows of the table, the charts of the report. */
import { metricLabel, sortMetrics } from '../terminal/format.ts';
import type { Estimate } from '../report/statistics.ts';
import type { EvalSummary, ModelSummary } from './summarise.ts';

export interface Measure {
  readonly label: string;
  /** By model, in their order. */
  readonly values: readonly (Estimate | null)[];
  /** A share of attempts: from 0 to 1. */
  readonly isShare: boolean;
}

/** What nobody reported is left out. */
export function planMeasures({ models }: EvalSummary): Measure[] {
  const measure = (label: string, value: (model: ModelSummary) => Estimate | null, isShare = false): Measure => ({
    label,
    values: models.map(value),
    isShare,
  });
  const names = sortMetrics(new Set(models.flatMap(({ metrics }) => Object.keys(metrics))));
  return [
    measure('reward', ({ reward }) => reward),
    measure('reward vs. first model', ({ rewardDifference }) => rewardDifference),
    ...names.map((name) => measure(metricLabel(name), ({ metrics }) => metrics[name] ?? null, name.endsWith('Rate'))),
    measure('input tokens', ({ promptTokens }) => promptTokens),
    measure('output tokens', ({ completionTokens }) => completionTokens),
    measure('US dollars', ({ costUsd }) => costUsd),
    measure('seconds per call', ({ latencySeconds }) => latencySeconds),
  ].filter(({ values }) => values.some((value) => value !== null));
}
