import type { ToldRun } from '../target.ts';
import { bestEvaluation, metricsOfEvaluation, metricsOfRow, resultOf, type NamedMetrics } from './metric-names.ts';

/** The result before and after, the newest value of each metric, the best evaluation: what the table of a tracker's runs shows. */
export function latestMetrics({ newest, evals }: Pick<ToldRun, 'newest' | 'evals'>): NamedMetrics {
  const results = evals.map((each) => resultOf(each));
  const metrics = Object.assign({}, ...results, ...newest.map((row) => metricsOfRow(row))) as NamedMetrics;
  const best = bestEvaluation(evals);
  if (best === null) return metrics;
  return { ...metrics, 'best/val/reward': metricsOfEvaluation(best)['val/reward']! };
}
