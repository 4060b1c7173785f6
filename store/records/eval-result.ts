import type { EvalResult } from '../../core/contract.ts';
import { mean, meanMetrics } from '../../core/statistics.ts';
import type { AttemptRecord } from './trajectories.ts';

/** Summary of an evaluation's attempts. */
export function summariseEval(step: number, attempts: readonly AttemptRecord[], rolloutsSha256: string): EvalResult {
  const data = attempts.filter(({ status }) => status === 'ok');
  const scenarios = new Set(attempts.map(({ scenario }) => scenario)).size;
  const hasRoles = attempts.some(({ roleRewards }) => roleRewards !== undefined);
  return {
    step,
    attempts: attempts.length,
    ...(hasRoles && scenarios < attempts.length ? { scenarios } : {}),
    failed: attempts.length - data.length,
    reward: mean(data.map(({ reward }) => reward).filter((reward) => reward !== null)),
    metrics: meanMetrics(data.map(({ metrics }) => metrics)),
    rolloutsSha256,
  };
}
