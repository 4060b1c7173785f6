/** Finds out whether a run is paid for something else than its goal: a success rate falls while the reward does not. Pure. */
import type { EvalResult, RunState } from '../../core/contract.ts';
import { estimateShare } from '../../core/estimates.ts';
import { formatNumber, headline } from '../../core/format.ts';
import type { FoundAdvisory } from './advisories.ts';

/** Smaller falls are noise of an evaluation. */
const LEAST_FALL = 0.1;

/** Compares the first and the last evaluation. Null where the agent reports no success rate. */
export function findGoalConflict(state: Pick<RunState, 'evalBefore' | 'evals'> | null): FoundAdvisory | null {
  const first = state?.evalBefore ?? null;
  const last = state?.evals.at(-1) ?? null;
  if (first === null || last === null || last.step <= first.step) return null;
  const [before, after] = [headline(first), headline(last)];
  if (before.label === 'reward' || before.label !== after.label || before.value === null || after.value === null)
    return null;
  const hasFallen = after.value < before.value - LEAST_FALL;
  if (!hasFallen || first.reward === null || last.reward === null || last.reward < first.reward) return null;
  return {
    kind: 'reward-against-goal',
    level: isCertain(first, before.value, last, after.value) ? 'alarm' : 'advice',
    text: `on held-out scenarios, ${before.label} fell from ${formatNumber(before.value)} to ${formatNumber(after.value)}, while the reward went from ${formatNumber(first.reward)} to ${formatNumber(last.reward)}: it pays for something else`,
    remedy:
      'open the attempts with the highest reward: what do they do instead? Lower the weight of the reward that pays for it, and fork from a checkpoint before the fall',
    steps: [first.step + 1, last.step],
    look: { kind: 'train', fromStep: first.step + 1, toStep: last.step, sort: '-reward' },
  };
}

/** Their 95 % intervals do not overlap. */
function isCertain(first: EvalResult, before: number, last: EvalResult, after: number): boolean {
  const low = estimateShare(before, first.attempts - first.failed).low;
  return estimateShare(after, last.attempts - last.failed).high < low;
}
