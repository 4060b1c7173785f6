/** Advisories say what is wrong with a run, or could be better, and what to do: from its curve. Pure. */
import type { EvalResult, RunState, StepSummary } from '../../core/contract/contract.ts';
import { findGoalConflict } from '../../core/reports/evaluation-warnings.ts';
import { formatDuration, formatNumber } from '../../core/reports/format.ts';
import { describeRemedy, isSkipped } from '../../core/reports/learning-signal.ts';
import { mean, median } from '../../core/numbers/statistics.ts';
import {
  isLearned,
  WARNED_STEPS,
  warnOfTraining,
  WATCHED_STEPS,
  type TrainingWarning,
} from '../../core/reports/training-warnings.ts';
import type { AttemptQuery } from '../api/attempt-query.ts';
import type { Advisory } from '../api/run-views.ts';

/** `look`: the attempts to look at. */
export type FoundAdvisory = Omit<Advisory, 'attempts'> & { readonly look: AttemptQuery | null };

/** Shares over the newest steps above which they are told. */
const MOST_ABORTED_SHARE = 0.05;
const ALARMING_ABORTED_SHARE = 0.5;
const MOST_EVEN_SHARE = 0.5;
/**
 * `core/reports/training-warnings.ts` warns from 20 % on in each of three trained steps. This is for steps that were skipped
 * because of it, and for a share that is high on the whole.
 */
const MOST_TRUNCATED_SHARE = 0.25;
/** Tokens of an attempt, against the first steps. */
const MOST_LENGTH_RATIO = 2;
const FIRST_STEPS = 5;
const STALLED_MEDIANS = 6;
const STALLED_SECONDS = 30 * 60;

/** Alarms first. Where the task is learned, equal rewards are no fault. */
export function findAdvisories(steps: readonly StepSummary[], evals: readonly EvalResult[] = []): FoundAdvisory[] {
  const newest = steps.filter(({ examples }) => examples === undefined).slice(-WATCHED_STEPS);
  const learned = isLearned(steps, evals);
  const constant = learned ? null : findConstantReward(newest);
  const warned = warnOfTraining(steps, evals).map((warning) => fromWarning(warning, evals, newest));
  const isTold = warned.some(({ kind }) => kind === 'goal-unmoved');
  // Where most attempts in training succeed, groups are even because they are solved, whatever held-out scenarios show.
  const even = learned || isLearned(steps, []) ? null : findEvenGroups(newest);
  const own = [
    isTold ? null : adviseOnConflict(evals),
    findAborts(newest),
    even,
    findTruncation(newest),
    findLengthDrift(steps),
  ];
  const found = [...warned, constant, ...own].filter((each) => each !== null);
  // Each matter once: the first one is the most precise. A reward that never changes leaves all groups without variance.
  const told = found.filter(({ kind }, index) => found.findIndex((other) => other.kind === kind) === index);
  return byLevel(constant === null ? told : told.filter(({ kind }) => kind !== 'no-variance'));
}

export function byLevel<T extends Pick<Advisory, 'level'>>(advisories: readonly T[]): T[] {
  return advisories.toSorted((a, b) => Number(a.level === 'advice') - Number(b.level === 'advice'));
}

/** Seconds that a phase usually takes, and a whole step. */
export type UsualSeconds = Readonly<Record<string, number>>;

export function usualSeconds(steps: readonly StepSummary[]): UsualSeconds {
  const names = ['rollout', 'judge', 'train', 'step'];
  const known = names.map((name) => [name, median(steps.flatMap(({ seconds }) => seconds[name] ?? []))] as const);
  return Object.fromEntries(known.filter((entry): entry is [string, number] => entry[1] !== null));
}

/** `progressAtMs`: time of the newest file that the run wrote. Null where nothing is to be waited for. */
export function findStall(
  state: Pick<RunState, 'state' | 'phase' | 'step' | 'awaited'> | null,
  usual: UsualSeconds,
  progressAtMs: number | null,
  nowMs: number,
): FoundAdvisory | null {
  if (state === null || progressAtMs === null || state.state !== 'running' || state.awaited) return null;
  const expected = usual[state.phase] ?? usual['step'];
  const seconds = (nowMs - progressAtMs) / 1000;
  if (expected === undefined || seconds < Math.max(STALLED_SECONDS, STALLED_MEDIANS * expected)) return null;
  return {
    kind: 'stalled',
    level: 'alarm',
    text: `step ${state.step + 1} has been in its phase ${state.phase} for ${formatDuration(seconds)}, which usually takes ${formatDuration(expected)}`,
    remedy:
      'check that workers run for all queues (temper doctor), and look at what the run waits for and at the retries in its timeline',
    steps: [state.step + 1, state.step + 1],
    look: null,
  };
}

function fromWarning(
  { kind, text }: TrainingWarning,
  evals: readonly EvalResult[],
  newest: readonly StepSummary[],
): FoundAdvisory {
  const conflict = kind === 'reward-against-goal' ? adviseOnConflict(evals) : null;
  if (conflict !== null) return conflict;
  const [says, remedy] = splitRemedy(text);
  if (kind === 'same-answer' || kind === 'lost-class' || kind === 'goal-unmoved')
    return { kind, level: 'alarm', text: says, remedy, steps: null, look: { kind: 'eval', sort: 'newest' } };
  const steps = spanOf(stepsOf(kind, newest));
  const look = kind === 'row-by-row' || kind === 'mismatch' ? null : inSteps(steps);
  const isAlarm = kind === 'no-variance' || kind === 'entropy' || kind === 'mismatch';
  const filter = kind === 'truncation' ? { ...look, truncated: true } : look;
  return { kind, level: isAlarm ? 'alarm' : 'advice', text: says, remedy, steps, look: filter };
}

function stepsOf(kind: TrainingWarning['kind'], newest: readonly StepSummary[]): readonly StepSummary[] {
  if (kind === 'row-by-row') return [];
  return newest.slice(kind === 'no-variance' ? newest.findLastIndex((step) => !isSkipped(step)) + 1 : -WARNED_STEPS);
}

/** A warning is `what was seen; what to do`. */
function splitRemedy(text: string): [string, string] {
  const end = text.indexOf('; ');
  return end < 0 ? [text, ''] : [text.slice(0, end), text.slice(end + 2)];
}

function findConstantReward(newest: readonly StepSummary[]): FoundAdvisory | null {
  const rewards = newest.slice(-WARNED_STEPS).flatMap(({ reward }) => reward ?? []);
  const isEven = (step: StepSummary) => isSkipped(step) && countGroups(step) === (step.unused['no-variance'] ?? 0);
  const isConstant = newest.slice(-WARNED_STEPS).every(isEven) && new Set(rewards).size === 1;
  if (rewards.length < WARNED_STEPS || !isConstant) return null;
  const steps = spanOf(newest.slice(newest.findLastIndex((step) => !isEven(step) || step.reward !== rewards[0]) + 1));
  return {
    kind: 'constant-reward',
    level: 'alarm',
    text: `every attempt earns ${formatNumber(rewards[0])}, whatever it does: nothing can be learned from it`,
    remedy:
      'compare a good and a bad attempt, and check that the reward tells them apart: units, types, a wrong key, a judge or parser that always answers the same, a bound that clips it',
    steps,
    look: inSteps(steps),
  };
}

/** Also where intervals overlap, which is no warning. */
function adviseOnConflict(evals: readonly EvalResult[]): FoundAdvisory | null {
  const conflict = findGoalConflict(evals);
  if (conflict === null) return null;
  const { text, remedy, isCertain, steps } = conflict;
  const [fromStep, toStep] = steps;
  const look = { kind: 'train', fromStep, toStep, sort: '-reward' } as const;
  return { kind: 'reward-against-goal', level: isCertain ? 'alarm' : 'advice', text, remedy, steps, look };
}

function findAborts(newest: readonly StepSummary[]): FoundAdvisory | null {
  const share = shareOf(newest, ({ failedAttempts }) => failedAttempts);
  if (share === null || share <= MOST_ABORTED_SHARE) return null;
  const steps = spanOf(newest.filter(({ failedAttempts }) => failedAttempts > 0));
  return {
    kind: 'aborts',
    level: share > ALARMING_ABORTED_SHARE ? 'alarm' : 'advice',
    text: `${percent(share)} of the attempts of the newest ${newest.length} steps failed (at most 5 % is usual)`,
    remedy: 'open one of the attempts, fix its error in the agent, or catch it and return a low reward',
    steps,
    look: { ...inSteps(steps), failure: 'any' },
  };
}

function findEvenGroups(newest: readonly StepSummary[]): FoundAdvisory | null {
  const all = newest.reduce((sum, step) => sum + countGroups(step), 0);
  const even = newest.reduce((sum, { unused }) => sum + (unused['no-variance'] ?? 0), 0);
  if (all === 0 || even / all <= MOST_EVEN_SHARE) return null;
  const steps = spanOf(newest);
  return {
    kind: 'no-variance',
    level: 'advice',
    text: `${percent(even / all)} of the groups of the newest ${newest.length} steps have identical rewards: they were paid for, and nothing is learned from them`,
    remedy: `use ${describeRemedy({ 'no-variance': 1 })} (--group-size), or a higher --temperature`,
    steps,
    look: inSteps(steps),
  };
}

function findTruncation(newest: readonly StepSummary[]): FoundAdvisory | null {
  const share = shareOf(newest, ({ truncatedAttempts = 0 }) => truncatedAttempts);
  if (share === null || share <= MOST_TRUNCATED_SHARE) return null;
  const steps = spanOf(newest);
  return {
    kind: 'truncation',
    level: 'advice',
    text: `${percent(share)} of the attempts of the newest ${newest.length} steps were truncated: what they did is not learned from, or wrongly`,
    remedy:
      'raise max_tokens of the calls (--max-tokens where they set none), shorten the prompts, or use --truncated penalise',
    steps,
    look: { ...inSteps(steps), truncated: true },
  };
}

function findLengthDrift(steps: readonly StepSummary[]): FoundAdvisory | null {
  const played = steps.filter(({ attempts, examples }) => attempts > 0 && examples === undefined);
  if (played.length < 2 * FIRST_STEPS) return null;
  const newest = played.slice(-FIRST_STEPS);
  const [before, after] = [tokensPerAttempt(played.slice(0, FIRST_STEPS)), tokensPerAttempt(newest)];
  const ratio = after / before;
  if (!Number.isFinite(ratio) || (ratio <= MOST_LENGTH_RATIO && ratio >= 1 / MOST_LENGTH_RATIO)) return null;
  const isLonger = ratio > 1;
  const span = spanOf(newest);
  return {
    kind: 'length-drift',
    level: 'advice',
    text: `attempts sample ${formatNumber(after, 0)} tokens, against ${formatNumber(before, 0)} in the first steps: answers have become ${isLonger ? 'longer' : 'shorter'}`,
    remedy: isLonger
      ? 'check that the reward does not pay for length; set --overlong-buffer and a lower max_tokens, or subtract a small cost per token'
      : 'check that the reward does not punish length, and that the attempts still do their task',
    steps: span,
    look: { ...inSteps(span), sort: isLonger ? '-tokens' : 'tokens' },
  };
}

/** The steps in which an advisory shows, as a filter of attempts. */
export function inSteps(steps: Advisory['steps']): AttemptQuery {
  return steps === null ? { kind: 'train' } : { kind: 'train', fromStep: steps[0], toStep: steps[1] };
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function spanOf(steps: readonly Pick<StepSummary, 'step'>[]): [number, number] | null {
  return steps.length === 0 ? null : [steps[0]!.step, steps.at(-1)!.step];
}

function countGroups({ groups, unused }: StepSummary): number {
  return groups + Object.values(unused).reduce((sum, count) => sum + count, 0);
}

function shareOf(steps: readonly StepSummary[], count: (step: StepSummary) => number): number | null {
  const attempts = steps.reduce((sum, step) => sum + step.attempts, 0);
  return attempts === 0 ? null : steps.reduce((sum, step) => sum + count(step), 0) / attempts;
}

function tokensPerAttempt(steps: readonly StepSummary[]): number {
  return mean(steps.map(({ sampledTokens, attempts }) => sampledTokens / attempts)) ?? Number.NaN;
}
