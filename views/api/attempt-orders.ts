/** Orders of rows of attempts, the same in a server and in a static export. Pure. */
import type { AttemptQuery, AttemptRow } from './attempt-views.ts';

export type Compare = (one: AttemptRow, other: AttemptRow) => number;

const placed: Compare = (one, other) =>
  one.branch - other.branch ||
  one.step - other.step ||
  (one.group ?? Infinity) - (other.group ?? Infinity) ||
  one.attempt - other.attempt;
const newestFirst: Compare = (one, other) => other.branch - one.branch || other.step - one.step || placed(one, other);

/** Rows without a number come last, whatever the direction. */
function byNumber(valueOf: (row: AttemptRow) => number | null, sign: 1 | -1): Compare {
  return (one, other) => {
    const [left, right] = [valueOf(one), valueOf(other)];
    if (left === null || right === null)
      return Number(left === null) - Number(right === null) || newestFirst(one, other);
    return sign * (left - right) || newestFirst(one, other);
  };
}

export const ORDERS = {
  newest: newestFirst,
  oldest: placed,
  reward: byNumber(({ reward }) => reward, 1),
  '-reward': byNumber(({ reward }) => reward, -1),
  tokens: byNumber(({ sampledTokens }) => sampledTokens, 1),
  '-tokens': byNumber(({ sampledTokens }) => sampledTokens, -1),
  turns: byNumber(({ turns }) => turns, 1),
  '-turns': byNumber(({ turns }) => turns, -1),
} as const satisfies Record<NonNullable<AttemptQuery['sort']>, Compare>;
