/** Reviews: which comparisons of a group are still needed, and the score that follows for each attempt. Pure. */
import type { Rating } from './agreement.ts';
import { scoreComparisons, type PairAnswer } from './bradley-terry.ts';
import type { Pair } from './pairs.ts';
import { mean } from './statistics.ts';

/** Name of reviewers who did not say theirs: they count as one. */
const ANONYMOUS = '';

export interface ReviewRules {
  /** Reviewers compare two attempts at a time; otherwise each attempt gets a score from 0 to 1. */
  readonly pairwise: boolean;
  /** Attempts that each one is compared with. */
  readonly comparisonsPerAttempt: number;
  /** Reviewers who answer each pair, or score each attempt. */
  readonly reviewers: number;
}

/** A ledger's row about two attempts. */
export interface ComparedPair extends Pair {
  readonly answer: PairAnswer;
  readonly by: string | null;
}

/** A ledger's score of an attempt. */
export interface GivenScore {
  readonly attempt: number;
  readonly reward: number;
  readonly by: string | null;
}

/** Attempts that said the same, word for word: they are compared once, and share the score. */
export interface PairPlan {
  readonly pairs: readonly Pair[];
  /** Attempts by the one that is shown for them. */
  readonly same: ReadonlyMap<number, readonly number[]>;
}

/** The last answer of each reviewer to a pair, from the planned sides. */
export function answersTo(pair: Pair, given: readonly ComparedPair[]): ComparedPair[] {
  const answers = new Map<string, ComparedPair>();
  for (const row of given) {
    const isTurned = row.left === pair.right && row.right === pair.left;
    if (isTurned) answers.set(row.by ?? ANONYMOUS, { ...row, ...pair, answer: turnAnswer(row.answer) });
    else if (row.left === pair.left && row.right === pair.right) answers.set(row.by ?? ANONYMOUS, row);
  }
  return [...answers.values()];
}

/** The same answer from the other side. */
export function turnAnswer(answer: PairAnswer): PairAnswer {
  if (answer === 'equal') return answer;
  return answer === 'left' ? 'right' : 'left';
}

/** Pairs that need further answers. */
export function openPairs(
  { pairs }: PairPlan,
  given: readonly ComparedPair[],
  { reviewers }: Pick<ReviewRules, 'reviewers'>,
): Pair[] {
  return pairs.filter((pair) => answersTo(pair, given).length < reviewers);
}

/** Scores by attempt from all answers to planned pairs; attempts without any have none. */
export function comparedScores({ pairs, same }: PairPlan, given: readonly ComparedPair[]): Map<number, number> {
  const scores = scoreComparisons(pairs.flatMap((pair) => answersTo(pair, given)));
  // Nothing tells attempts apart that all said the same.
  if (same.size === 1) for (const shown of same.keys()) scores.set(shown, 0.5);
  return new Map([...scores].flatMap(([shown, score]) => (same.get(shown) ?? []).map((attempt) => [attempt, score])));
}

/** The last score of each reviewer, by attempt. */
export function scoresOf(given: readonly GivenScore[]): Map<number, Map<string, number>> {
  const scores = new Map<number, Map<string, number>>();
  for (const { attempt, reward, by } of given) {
    const ofAttempt = scores.get(attempt) ?? new Map<string, number>();
    scores.set(attempt, ofAttempt.set(by ?? ANONYMOUS, reward));
  }
  return scores;
}

/** Mean of the reviewers' scores by attempt; sorted, since a sum of floats depends on its order. */
export function meanScores(given: readonly GivenScore[]): Map<number, number> {
  return new Map(
    [...scoresOf(given)].map(([attempt, byReviewer]) => [
      attempt,
      mean([...byReviewer.values()].toSorted((a, b) => a - b))!,
    ]),
  );
}

/** Answers to pairs as ratings, each reviewer's last one; `place` tells the pairs of one group from those of others. */
export function comparisonRatings(place: string, given: readonly ComparedPair[]): Rating<PairAnswer>[] {
  const pairs = new Map(
    given.map(({ left, right }) => {
      const [low, high] = [Math.min(left, right), Math.max(left, right)];
      return [`${place}.${low}-${high}`, { left: low, right: high }];
    }),
  );
  return [...pairs].flatMap(([unit, pair]) =>
    answersTo(pair, given).map(({ by, answer: value }) => ({ unit, reviewer: by ?? ANONYMOUS, value })),
  );
}

export function scoreRatings(place: string, given: readonly GivenScore[]): Rating<number>[] {
  return [...scoresOf(given)].flatMap(([attempt, byReviewer]) =>
    [...byReviewer].map(([reviewer, value]) => ({ unit: `${place}.${attempt}`, reviewer, value })),
  );
}
