/** The loss of supervised steps on held-out examples. */
import type { StepSummary } from '../../core/contract.ts';
import { plural } from '../../core/format.ts';

/** In nats per token, before the first step and after the last one that was scored. */
export interface HeldOutLoss {
  readonly before: number;
  readonly after: number;
  /** Examples. */
  readonly examples: number;
}

const DIGITS = 3;

/** Null where nothing was scored. */
export function findHeldOutLoss(steps: readonly Pick<StepSummary, 'train'>[]): HeldOutLoss | null {
  const before = steps.map(({ train }) => train['heldOutLossBefore']).find(isNumber);
  const last = steps.findLast(({ train }) => isNumber(train['heldOutLoss']))?.train;
  if (before === undefined || last === undefined) return null;
  return { before, after: last['heldOutLoss']!, examples: last['heldOutExamples'] ?? 0 };
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
