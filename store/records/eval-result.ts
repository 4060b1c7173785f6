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
    ...shareOfSameAnswer(data),
  };
}

/** Fewer attempts say nothing. */
const LEAST_COMPARED = 10;
const REMARKABLE_SHARE = 0.9;

/** Ids of tool calls differ in every answer. */
function shareOfSameAnswer(attempts: readonly AttemptRecord[]): Pick<EvalResult, 'sameAnswerShare'> {
  const counts = new Map<string, number>();
  for (const { calls } of attempts) {
    const said = JSON.stringify(
      calls.map(({ message: { content, tool_calls } }) => [content, tool_calls]),
      (name, value: unknown) => (name === 'id' ? undefined : value),
    );
    counts.set(said, (counts.get(said) ?? 0) + 1);
  }
  const share = Math.max(0, ...counts.values()) / attempts.length;
  return attempts.length >= LEAST_COMPARED && share >= REMARKABLE_SHARE ? { sameAnswerShare: share } : {};
}
