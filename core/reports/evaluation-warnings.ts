/** Warnings about what held-out scenarios show: one answer for all of them, a goal that stands still, or one that falls. Pure. */
import type { EvalResult } from '../contract/contract.ts';
import { estimateShare } from '../numbers/statistics.ts';
import { formatNumber, headline, isRate, metricLabel } from './format.ts';

export interface EvaluationWarning {
  readonly kind: 'same-answer' | 'lost-class' | 'goal-unmoved' | 'reward-against-goal';
  readonly text: string;
}

/** From this success rate on, a task is learned. */
export const LEARNED_RATE = 0.8;
/** A success rate that rose by less stands still; another number that rose by more has been learned. */
const LEAST_MOVE = 0.05;
const LEAST_RISE = 0.2;
/** Smaller falls are noise of an evaluation. */
const LEAST_FALL = 0.1;

/** Compares the first and the last evaluation; nothing before the first step. */
export function warnOfEvaluations(evals: readonly EvalResult[]): EvaluationWarning[] {
  const [first, last] = [evals.at(0), evals.at(-1)];
  if (first === undefined || last === undefined || last.step === 0) return [];
  const unmoved = warnOfGoal(first, last);
  const same = warnOfSameAnswer(last);
  const found = [
    { kind: 'same-answer', text: same },
    { kind: 'lost-class', text: same === null ? warnOfLostClasses(last) : null },
    { kind: 'goal-unmoved', text: unmoved },
    { kind: 'reward-against-goal', text: unmoved === null ? warnOfConflict(evals) : null },
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

const MOST_NAMED = 3;

function warnOfLostClasses(last: EvalResult): string | null {
  const { step, lostClasses = [] } = last;
  if (lostClasses.length === 0) return null;
  const { label, value } = headline(last);
  const named = lostClasses
    .slice(0, MOST_NAMED)
    .map((each) => `${each.field} ${each.value} (0 of ${each.attempts} ${label})`);
  const others = lostClasses.length > MOST_NAMED ? [`${lostClasses.length - MOST_NAMED} more`] : [];
  return `after step ${step}, no held-out attempt succeeded with ${[...named, ...others].join(', ')}, while ${formatNumber(value)} of all did; if the policy hardly ever gives that answer, train more supervised steps (--warm-start), or more scenarios of it`;
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

/** The run is paid for something else than its goal. */
export interface GoalConflict {
  readonly text: string;
  readonly remedy: string;
  /** The 95 % intervals of the success rate do not overlap. */
  readonly isCertain: boolean;
  readonly steps: readonly [first: number, last: number];
}

function warnOfConflict(evals: readonly EvalResult[]): string | null {
  const conflict = findGoalConflict(evals);
  return conflict?.isCertain === true ? `${conflict.text}; ${conflict.remedy}` : null;
}

/** A success rate falls while the reward does not, from the first evaluation to the last. Null where the agent reports no success rate. */
export function findGoalConflict(evals: readonly EvalResult[]): GoalConflict | null {
  const [first, last] = [measure(evals.at(0)), measure(evals.at(-1))];
  if (first === null || last === null || first.label !== last.label || !hasConflict(first, last)) return null;
  return {
    text: `on held-out scenarios, ${first.label} fell from ${formatNumber(first.rate)} to ${formatNumber(last.rate)}, while the reward went from ${formatNumber(first.reward)} to ${formatNumber(last.reward)}: it pays for something else`,
    remedy:
      'open the attempts with the highest reward: what do they do instead? Lower the weight of the reward that pays for it, and fork from a checkpoint before the fall',
    isCertain: estimateShare(last.rate, last.count).high < estimateShare(first.rate, first.count).low,
    steps: [first.step + 1, last.step],
  };
}

interface Measured {
  readonly step: number;
  readonly label: string;
  readonly rate: number;
  readonly reward: number;
  readonly count: number;
}

function measure(evaluation: EvalResult | undefined): Measured | null {
  if (evaluation === undefined || evaluation.reward === null) return null;
  const { label, value } = headline(evaluation);
  if (label === 'reward' || value === null) return null;
  const { step, reward, attempts, failed } = evaluation;
  return { step, label, rate: value, reward, count: attempts - failed };
}

function hasConflict(first: Measured, last: Measured): boolean {
  return last.step > first.step && last.rate < first.rate - LEAST_FALL && last.reward >= first.reward;
}
