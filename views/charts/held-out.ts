/** What a run has reached on its held-out scenarios: before training, and by its newest evaluation. Pure. */
import type { EvalResult, RunState, StepSummary } from '../../core/contract/contract.ts';
import { headline, headlineInterval, plural } from '../../core/reports/format.ts';

export interface HeldOutNumber {
  readonly evaluation: EvalResult;
  readonly value: number | null;
  /** 95 % interval; null if it is not known. */
  readonly interval: readonly [low: number, high: number] | null;
}

interface HeldOutResult {
  /** `reward`, or a rate such as `win`. */
  readonly label: string;
  /** Null if the run was not evaluated before its first step. */
  readonly before: HeldOutNumber | null;
  /** Null if it was not evaluated since. */
  readonly after: HeldOutNumber | null;
}

/** `rewards`: the interval of each evaluation's mean reward, by its step. Null if the run has no evaluation. */
export function findHeldOut(
  { evals, evalBefore, evalAfter }: Pick<RunState, 'evals' | 'evalBefore' | 'evalAfter'>,
  rewards: Readonly<Record<number, readonly [low: number, high: number]>> = {},
): HeldOutResult | null {
  const newest = evals.at(-1) ?? evalAfter ?? evalBefore;
  if (newest === null) return null;
  const numberOf = (evaluation: EvalResult): HeldOutNumber => ({
    evaluation,
    value: headline(evaluation).value,
    interval: headlineInterval(evaluation) ?? rewards[evaluation.step] ?? null,
  });
  const isFirst = newest.step === 0;
  const before = isFirst ? newest : evalBefore;
  return {
    label: headline(newest).label,
    before: before === null ? null : numberOf(before),
    after: isFirst ? null : numberOf(newest),
  };
}

/** The loss of supervised steps on held-out examples, in nats per token: before the first step, after the last scored one. */
export interface HeldOutLoss {
  readonly before: number;
  readonly after: number;
  /** Examples. */
  readonly examples: number;
  /** The last scored step. */
  readonly step: number;
}

const DIGITS = 3;

/** Null where nothing was scored. */
export function findHeldOutLoss(steps: readonly Pick<StepSummary, 'step' | 'train'>[]): HeldOutLoss | null {
  const before = steps.map(({ train }) => train['heldOutLossBefore']).find(isNumber);
  const last = steps.findLast(({ train }) => isNumber(train['heldOutLoss']));
  if (before === undefined || last === undefined) return null;
  const { step, train } = last;
  return { before, after: train['heldOutLoss']!, examples: train['heldOutExamples'] ?? 0, step };
}

/** `2.103 → 0.512 nats per token (20 held-out examples)` */
export function describeHeldOutLoss({ before, after, examples }: HeldOutLoss): string {
  return `${before.toFixed(DIGITS)} → ${after.toFixed(DIGITS)} nats per token (${plural(examples, 'held-out example')})`;
}

/** The same where the numbers stand between a heading and a note. */
export const LOSS_HEADING = 'Loss on held-out examples';

export function lossNote({ examples }: HeldOutLoss): string {
  return `nats per token of ${plural(examples, 'example')}, before and after training`;
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}
