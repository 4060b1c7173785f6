/** `external({ … })`, as what plays and judges sees it: the rewards of attempts come from outside, later. */
import { TemperError } from '../core/failures.ts';

/** `Name`: of the named reward that it gives; never, if it gives the attempt's whole reward. */
export interface External<Name extends string = string> {
  readonly [EXTERNAL_REWARD]: true;
  readonly name: Name | null;
  /** Null: the run waits as long as it takes. */
  readonly timeoutMs: number | null;
  /** Treatment of attempts without a reward once the time is over. */
  readonly onTimeout: 'drop' | number;
  /** Fewest given rewards with which a group is used once its time is over; null: those that a group needs at least. */
  readonly minimum: number | null;
}

/** Registered globally: an agent file may load another copy of this module than the worker that plays it. */
export const EXTERNAL_REWARD = Symbol.for('temper.external');

/** Whether a value came from `external`. */
export function isExternal(value: unknown): value is External {
  return typeof value === 'object' && value !== null && (value as Partial<External>)[EXTERNAL_REWARD] === true;
}

/** Throws if turn rewards would be replaced with the rest of the attempt's own reward. */
export function checkTurnsOfExternal({ name }: External): void {
  if (name !== null) return;
  throw new TemperError(
    'BadConfig',
    'rewardTurn has no effect when the whole reward is given from outside; name it, as in external({ name }), or remove the call',
  );
}
