/** What a run has reached on its held-out scenarios: before training, and by its newest evaluation. Pure. */
import type { EvalResult, RunState } from '../../core/contract.ts';
import { headline, headlineInterval } from '../../core/format.ts';

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
