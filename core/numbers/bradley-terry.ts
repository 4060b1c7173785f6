/**
 * Scores from paired comparisons: the model of Bradley and Terry (Rank analysis of incomplete block designs, Biometrika
 * 39, 1952), in which an attempt of strength p beats one of strength q with probability p / (p + q). A tie is half a win
 * for each. Pure, and of +, × and ÷ alone, so that every processor gives the same bytes.
 */
import type { Pair } from './pairs.ts';

export type PairAnswer = 'left' | 'right' | 'equal';

export interface Comparison extends Pair {
  readonly answer: PairAnswer;
}

/**
 * Regularisation: each attempt has also drawn once against a phantom of strength 1. Without it, an attempt that won all
 * of its comparisons has no finite strength, and unconnected attempts none at all.
 */
const PHANTOM_DRAWS = 1;

/** The iteration gains a digit in a few rounds: far more than it needs for any group. */
const MAX_ROUNDS = 20_000;
const TOLERANCE = 1e-12;
/** Digits of a score: attempts with symmetric answers must get equal scores, not nearly equal ones. */
const SCALE = 1e6;

/**
 * Each attempt's expected share of wins if it met every other attempt of the group, from 0 to 1. It does not depend on
 * which opponents an attempt happened to meet. Attempts without comparisons are not in the result.
 */
export function scoreComparisons(comparisons: readonly Comparison[]): Map<number, number> {
  const attempts = [...new Set(comparisons.flatMap(({ left, right }) => [left, right]))].toSorted((a, b) => a - b);
  const strengths = findStrengths(attempts, comparisons);
  return new Map(attempts.map((attempt) => [attempt, roundScore(shareOfWins(attempt, attempts, strengths))]));
}

/**
 * The most likely strengths, by the iteration of Hunter (MM algorithms for generalized Bradley–Terry models, Annals of
 * Statistics 32, 2004): p ← wins / Σ over comparisons of 1 / (p + q).
 */
function findStrengths(attempts: readonly number[], comparisons: readonly Comparison[]): Map<number, number> {
  const strengths = new Map(attempts.map((attempt) => [attempt, 1]));
  const records = attempts.map((attempt) => ({
    attempt,
    wins: winsOf(attempt, comparisons),
    opponents: opponentsOf(attempt, comparisons),
  }));
  for (let round = 0, change = Infinity; round < MAX_ROUNDS && change > TOLERANCE; round++) {
    change = 0;
    for (const { attempt, wins, opponents } of records) {
      const before = strengths.get(attempt)!;
      const met = opponents.reduce(
        (sum, opponent) => sum + 1 / (before + strengths.get(opponent)!),
        PHANTOM_DRAWS / (before + 1),
      );
      strengths.set(attempt, wins / met);
      change = Math.max(change, Math.abs(wins / met / before - 1));
    }
  }
  return strengths;
}

function opponentsOf(attempt: number, comparisons: readonly Comparison[]): number[] {
  const own = comparisons.filter(({ left, right }) => left === attempt || right === attempt);
  return own.map(({ left, right }) => (left === attempt ? right : left));
}

function winsOf(attempt: number, comparisons: readonly Comparison[]): number {
  return comparisons.reduce((wins, { left, right, answer }) => {
    if (left !== attempt && right !== attempt) return wins;
    if (answer === 'equal') return wins + 0.5;
    return wins + ((answer === 'left') === (left === attempt) ? 1 : 0);
  }, PHANTOM_DRAWS / 2);
}

function shareOfWins(attempt: number, attempts: readonly number[], strengths: ReadonlyMap<number, number>): number {
  const own = strengths.get(attempt)!;
  const others = attempts.filter((other) => other !== attempt);
  return others.reduce((sum, other) => sum + own / (own + strengths.get(other)!), 0) / others.length;
}

function roundScore(share: number): number {
  return Math.round(share * SCALE) / SCALE;
}
