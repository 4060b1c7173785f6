import type { ToldRun } from '../target.ts';
import { bestEvaluation, metricsOfEvaluation, metricsOfRow, type NamedMetrics } from './metric-names.ts';

/** The newest value of each metric, and the best evaluation: what the table of a tracker's runs shows. */
export function latestMetrics({ newest, evals }: Pick<ToldRun, 'newest' | 'evals'>): NamedMetrics {
  const metrics = Object.assign({}, ...newest.map((row) => metricsOfRow(row))) as NamedMetrics;
  const best = bestEvaluation(evals);
  if (best === null) return metrics;
  return { ...metrics, 'best/val/reward': metricsOfEvaluation(best)['val/reward']! };
}
