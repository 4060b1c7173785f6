/** Messages about steps without a learning signal: for one step, for several in a row, and at a run's end. Pure. */
import { LEARNED_RATE } from './evaluation-warnings.ts';
import { headline } from './format.ts';
import type { EvalResult, GroupResult, RunState, StepSummary } from '../contract/contract.ts';

/** How the note begins that tells why a run ended by itself before its last step. */
export const ENDED_EARLY = 'ended early: ';

/** Groups that were not trained, by reason. */
export type Unused = StepSummary['unused'];

/** Reasons why a group was not trained, with remedies. */
const REASONS: Readonly<Record<string, { had: string; remedy: string }>> = {
  'no-variance': {
    had: 'identical rewards (no learning signal)',
    remedy:
      'scenarios that the model solves at times, supervised steps first (--warm-start) if it never gives a right answer, credit for steps towards the goal, larger groups',
  },
  'too-few-attempts': { had: 'too many failed attempts', remedy: 'fixing the failures that the report shows' },
  'no-sampled-tokens': {
    had: 'no tokens sampled by the model',
    remedy: 'calling the model through the client of the rollout',
  },
  stale: {
    had: 'a policy that was too old when their rewards were complete',
    remedy: 'rewards that are given sooner, a higher --max-reward-staleness, fewer --groups-ahead',
  },
  'all-truncated': { had: 'only truncated attempts', remedy: 'a higher token limit, shorter prompts' },
};

/** A step without signal is bad luck; as many in a row are worth a warning. */
const WARNED_SKIPS = 2;
const DIGITS = 3;

export function countUnused(played: readonly GroupResult[]): Unused {
  const unused: Unused = {};
  for (const { use } of played) if (use !== 'trained') unused[use] = (unused[use] ?? 0) + 1;
  return unused;
}

/** `every group had identical rewards (no learning signal)`, or `6 groups had …, 2 groups had …`. `isAll`: no group was trained. */
export function describeUnused(unused: Unused, isAll = true): string {
  const counts = Object.entries(unused);
  if (counts.length === 0) return 'there were no groups';
  if (counts.length === 1 && isAll) return `every group had ${hadOf(counts[0]![0])}`;
  return counts.map(([use, count]) => `${count} ${count === 1 ? 'group' : 'groups'} had ${hadOf(use)}`).join(', ');
}

/** Remedies, the most frequent reason first. */
export function describeRemedy(unused: Unused): string {
  const uses = Object.entries(unused).toSorted(([, a], [, b]) => b - a);
  return uses.flatMap(([use]) => REASONS[use]?.remedy ?? []).join('; ') || 'giving each step its groups';
}

export function describeSkipped(step: number, unused: Unused): string {
  return `step ${step} was skipped: ${describeUnused(unused)}; the policy is unchanged`;
}

type Success = Pick<EvalResult, 'reward' | 'metrics'>;

/** Null if it is too early for a warning. `last`: the newest of these steps; `held`: the newest evaluation. */
export function warnOfSkips(stepsInARow: number, last: LastStep, held: Success | null = null): string | null {
  if (stepsInARow < WARNED_SKIPS) return null;
  const { reward, metrics = {} } = last;
  const remedy = describeRemedy(last.unused);
  return `${stepsInARow} steps in a row were skipped, so the policy is not learning; try ${remedy}${hintAtBest(last, held ?? { reward, metrics })}`;
}

type LastStep = Pick<StepSummary, 'unused' | 'reward'> & Partial<Pick<StepSummary, 'metrics'>>;

/** The highest reward is known to the agent's author alone; a success rate says when it is far. */
function hintAtBest({ unused, reward }: LastStep, success: Success): string {
  if (unused['no-variance'] === undefined || reward === null || reward <= 0) return '';
  const { label, value } = headline(success);
  if (label !== 'reward' && (value ?? 0) < LEARNED_RATE) return '';
  return `; or, if no attempt can earn more than ${reward.toFixed(DIGITS)}, end the run: the task is learned`;
}

type Trained = Pick<StepSummary, 'groups' | 'examples'>;

/** Nothing was trained in it, neither groups nor examples. */
export function isSkipped({ groups, examples }: Trained): boolean {
  return groups === 0 && examples === undefined;
}

/** How many of the last steps were skipped. */
export function countSkipped(steps: readonly Trained[]): number {
  return steps.length - 1 - steps.findLastIndex((step) => !isSkipped(step));
}

/** Suggests what to try if the reward did not move, on held-out scenarios if there are any; null if it moved. */
export function hintIfStalled(
  { evalBefore, evalAfter }: Pick<RunState, 'evalBefore' | 'evalAfter'>,
  steps: readonly (Trained & Pick<StepSummary, 'reward'>)[],
): string | null {
  const rewards = steps.flatMap(({ reward }) => reward ?? []);
  const held = [evalBefore?.reward, evalAfter?.reward].filter((reward) => typeof reward === 'number');
  const [first, last] = held.length === 2 ? [held[0], held[1]] : [rewards.at(0), rewards.at(-1)];
  if (steps.length < 2 || first === undefined || last === undefined) return null;
  if (first.toFixed(DIGITS) !== last.toFixed(DIGITS)) return null;
  const all = new Set([...rewards, ...held]);
  const isAlwaysSame = all.size === 1 && steps.every(isSkipped);
  return `reward ${first.toFixed(DIGITS)} → ${last.toFixed(DIGITS)}: ${isAlwaysSame ? hintAtConstant(first) : 'it did not improve; try more steps, a higher learning rate or larger groups'}`;
}

function hintAtConstant(reward: number): string {
  if (reward === 0)
    return 'no attempt ever earned anything; try easier scenarios, supervised steps first (--warm-start), credit for steps towards the goal, or a stronger base model';
  return 'every attempt earned the same; check that the reward tells good answers from bad ones, or try harder scenarios';
}

function hadOf(use: string): string {
  return REASONS[use]?.had ?? use;
}
