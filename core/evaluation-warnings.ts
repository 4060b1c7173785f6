/** Warnings about what held-out scenarios show: one answer for all of them, or a goal that stands still. Pure. */
import type { EvalResult } from './contract.ts';
import { formatNumber, headline, isRate, metricLabel } from './format.ts';

export interface EvaluationWarning {
  readonly kind: 'same-answer' | 'goal-unmoved';
  readonly text: string;
}

/** From this success rate on, a task is learned. */
export const LEARNED_RATE = 0.8;
/** A success rate that rose by less stands still; another number that rose by more has been learned. */
const LEAST_MOVE = 0.05;
const LEAST_RISE = 0.2;

/** Compares the first and the last evaluation; nothing before the first step. */
export function warnOfEvaluations(evals: readonly EvalResult[]): EvaluationWarning[] {
  const [first, last] = [evals.at(0), evals.at(-1)];
  if (first === undefined || last === undefined || last.step === 0) return [];
  const found = [
    { kind: 'same-answer', text: warnOfSameAnswer(last) },
    { kind: 'goal-unmoved', text: warnOfGoal(first, last) },
  ] as const;
  return found.flatMap(({ kind, text }) => (text === null ? [] : [{ kind, text }]));
}

function warnOfSameAnswer(last: EvalResult): string | null {
  const { step, sameAnswerShare: share } = last;
  const { label, value } = headline(last);
  // The right answer may be the same everywhere.
  if (share === undefined || (label !== 'reward' && value !== null && value >= share)) return null;
  return `after step ${step}, the policy gives the same answer in ${(100 * share).toFixed(0)} % of the held-out attempts, whatever it is asked; go back to an earlier step (temper rollback), lower --learning-rate, raise --temperature or --entropy-coefficient, and check that no single answer earns well in most scenarios`;
}

function warnOfGoal(first: EvalResult, last: EvalResult): string | null {
  const [before, after] = [headline(first), headline(last)];
  if (after.label === 'reward' || before.label !== after.label || before.value === null || after.value === null)
    return null;
  if (after.value - before.value >= LEAST_MOVE || after.value >= LEARNED_RATE) return null;
  const risen = Object.keys(last.metrics)
    .filter((name) => isRate(name) && metricLabel(name) !== after.label)
    .map((name) => ({ name: metricLabel(name), from: first.metrics[name] ?? 1, to: last.metrics[name]! }))
    .filter(({ from, to }) => to - from >= LEAST_RISE)
    .toSorted((a, b) => b.to - b.from - (a.to - a.from))[0];
  if (risen === undefined) return null;
  return `on held-out scenarios, ${risen.name} rose from ${formatNumber(risen.from)} to ${formatNumber(risen.to)}, but ${after.label} did not: ${formatNumber(before.value)} to ${formatNumber(after.value)}; pay less for ${risen.name} alone, give partial credit on the way to ${after.label}, or use scenarios that the model solves at times`;
}
