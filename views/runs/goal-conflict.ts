/** Finds out whether a run is paid for something else than its goal: a success rate falls while the reward does not. Pure. */
import type { EvalResult, RunState } from '../../core/contract.ts';
import { estimateShare } from '../../core/estimates.ts';
import { formatNumber, headline } from '../../core/format.ts';
import type { FoundAdvisory } from './advisories.ts';

/** Smaller falls are noise of an evaluation. */
const LEAST_FALL = 0.1;

/** Compares the first and the last evaluation. Null where the agent reports no success rate. */
export function findGoalConflict(state: Pick<RunState, 'evalBefore' | 'evals'> | null): FoundAdvisory | null {
  const first = measure(state?.evalBefore);
  const last = measure(state?.evals.at(-1));
  if (first === null || last === null || first.label !== last.label || !hasConflict(first, last)) return null;
  return {
    kind: 'reward-against-goal',
    level: isCertain(first, last) ? 'alarm' : 'advice',
    text: `on held-out scenarios, ${first.label} fell from ${formatNumber(first.rate)} to ${formatNumber(last.rate)}, while the reward went from ${formatNumber(first.reward)} to ${formatNumber(last.reward)}: it pays for something else`,
    remedy:
      'open the attempts with the highest reward: what do they do instead? Lower the weight of the reward that pays for it, and fork from a checkpoint before the fall',
    steps: [first.step + 1, last.step],
    look: { kind: 'train', fromStep: first.step + 1, toStep: last.step, sort: '-reward' },
  };
}

interface Measured {
  readonly step: number;
  readonly label: string;
  readonly rate: number;
  readonly reward: number;
  readonly count: number;
}

function measure(evaluation: EvalResult | null | undefined): Measured | null {
  if (!evaluation || evaluation.reward === null) return null;
  const { label, value } = headline(evaluation);
  if (label === 'reward' || value === null) return null;
  const { step, reward, attempts, failed } = evaluation;
  return { step, label, rate: value, reward, count: attempts - failed };
}

function hasConflict(first: Measured, last: Measured): boolean {
  return last.step > first.step && last.rate < first.rate - LEAST_FALL && last.reward >= first.reward;
}

/** Their 95 % intervals do not overlap. */
function isCertain(first: Measured, last: Measured): boolean {
  return estimateShare(last.rate, last.count).high < estimateShare(first.rate, first.count).low;
}
