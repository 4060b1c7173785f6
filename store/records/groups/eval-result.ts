import type { EvalResult } from '../../../core/contract/contract.ts';
import { successRate } from '../../../core/reports/format.ts';
import { mean, meanMetrics } from '../../../core/numbers/statistics.ts';
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

type LostClass = NonNullable<EvalResult['lostClasses']>[number];

/** Fewer attempts of a class may fail by chance. */
const LEAST_OF_CLASS = 4;
const MOST_CLASSES = 10;

/** Classes without any success, by the agent's first success rate; `classes`: the value of `field` of each attempt. */
export function findLostClasses(
  attempts: readonly AttemptRecord[],
  field: string,
  classes: readonly string[],
): LostClass[] {
  const all = meanMetrics(attempts.map(({ metrics }) => metrics));
  const rate = successRate(all);
  if (rate === null || all[rate] === 0) return [];
  const byClass = new Map<string, AttemptRecord[]>();
  for (const value of new Set(classes)) byClass.set(value, []);
  for (const [index, attempt] of attempts.entries()) byClass.get(classes[index]!)!.push(attempt);
  const lost = [...byClass].filter(
    ([, its]) => its.length >= LEAST_OF_CLASS && (meanMetrics(its.map(({ metrics }) => metrics))[rate] ?? 0) === 0,
  );
  return lost.slice(0, MOST_CLASSES).map(([value, its]) => ({ field, value, attempts: its.length }));
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
