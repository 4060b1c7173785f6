/** `external({ … })`, as what plays and judges sees it: the rewards of attempts come from outside, later. */
import { badConfig } from '../core/contract/failures.ts';
import type { ReviewRules } from '../core/numbers/review.ts';

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
  /** Present if people compare or score the attempts: `review({ … })`. */
  readonly review?: Review;
}

/** Reviewers and what they are asked. */
interface Review extends ReviewRules {
  /** Shown above the attempts; null: a question of Temper's own. */
  readonly question: string | null;
  /** The reward is the weighted sum of the reviewers' score and the agent's own reward. */
  readonly weights: { readonly review: number; readonly agent: number };
}

/** Registered globally: an agent file may load another copy of this module than the worker that plays it. */
export const EXTERNAL_REWARD = Symbol.for('temper.external');

/** Whether a value came from `external`. */
export function isExternal(value: unknown): value is External {
  return typeof value === 'object' && value !== null && (value as Partial<External>)[EXTERNAL_REWARD] === true;
}

/** Throws if turn rewards would be replaced with the rest of the attempt's own reward. */
export function checkTurnsOfExternal({ name, review }: External): void {
  if (name !== null || (review !== undefined && review.weights.agent > 0)) return;
  const remedy =
    review === undefined ? 'name it, as in external({ name })' : 'give the agent a weight in review({ weights })';
  throw badConfig(
    `rewardTurn has no effect when the whole reward is given from outside; ${remedy}, or remove the call`,
  );
}
