import { TemperError } from '../../core/failures.ts';
import { planPrune, prune } from '../../store/prune.ts';
import { readEval } from '../../store/run-reader.ts';
import type { LoopRun } from './loop-run.ts';

export interface DeleteCheckpointsOptions {
  /** Of the evaluations that `model.log` kept: `reward`, or one of their metrics, with or without `val/` before it. */
  bestCheckpointMetric?: string;
}

/** Manifests, rollouts and evaluations stay; what a step under way or a fork needs stays too. */
export async function deleteCheckpoints(
  run: LoopRun,
  { bestCheckpointMetric }: DeleteCheckpointsOptions,
): Promise<void> {
  if (bestCheckpointMetric?.startsWith('train/')) throw notOfTraining(bestCheckpointMetric);
  const metric = (bestCheckpointMetric ?? 'reward').replace(/^val\//, '');
  // Without an evaluation nothing is best; only who names a metric is told.
  const keepBest = bestCheckpointMetric !== undefined || (await isEvaluated(run)) ? [{ metric, count: 1 }] : [];
  await prune(run.store, await planPrune(run.store, run.name, { keepLast: 1, keepBest, keepEvery: null }));
}

async function isEvaluated({ store, name, step: last }: LoopRun): Promise<boolean> {
  for (let step = 0; step <= last; step++) {
    if ((await readEval(store, { run: name, branch: 0, step })) !== null) return true;
  }
  return false;
}

function notOfTraining(metric: string): TemperError {
  return new TemperError(
    'BadConfig',
    `bestCheckpointMetric must be one of the evaluations (a step's own reward is that of the policy before it), got ${metric}; pass val/reward`,
  );
}
