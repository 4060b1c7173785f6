import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { prune } from '../../store/records/retention/prune.ts';
import { anything, takes } from '../options/options.ts';
import type { LoopRun } from './loop-run.ts';

export interface DeleteCheckpointsOptions {
  /** Metric of the evaluations that `model.log` kept, or `reward`, with or without `val/` before it. */
  bestCheckpointMetric?: string;
}

const checkOptions = takes<DeleteCheckpointsOptions>('model.deleteCheckpoints', {
  bestCheckpointMetric: anything.optional(),
});

/** Manifests, rollouts and evaluations stay; what a step under way or a fork needs stays too. */
export async function deleteCheckpoints(run: LoopRun, options: DeleteCheckpointsOptions): Promise<void> {
  const { bestCheckpointMetric } = checkOptions(options);
  if (bestCheckpointMetric?.startsWith('train/')) throw notOfTraining(bestCheckpointMetric);
  const metric = (bestCheckpointMetric ?? 'reward').replace(/^val\//, '');
  // Without an evaluation nothing is best; only who names a metric gets an error.
  const keepBest = bestCheckpointMetric !== undefined || run.evals.length > 0 ? [{ metric, count: 1 }] : [];
  await prune(run.store, run.name, { keepLast: 1, keepBest, keepEvery: null });
}

function notOfTraining(metric: string): TemperError {
  return badConfig(
    `bestCheckpointMetric must be one of the evaluations (a step's own reward is that of the policy before it), got ${metric}; pass val/reward`,
  );
}
