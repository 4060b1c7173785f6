import { expect, test } from 'vitest';

import type { PairAnswer } from '../../../core/numbers/bradley-terry.ts';
import { planPairs } from '../../../core/numbers/pairs.ts';
import {
  answersTo,
  comparedScores,
  meanScores,
  openPairs,
  type ComparedPair,
  type PairPlan,
} from '../../../core/numbers/review.ts';

const PAIR = { left: 2, right: 5 };

test('a reviewer’s last answer counts, and the side on which it was given does not', () => {
  const given = [answer(2, 5, 'left', 'ada'), answer(5, 2, 'left', 'bob'), answer(2, 5, 'equal', 'ada')];
  expect(answersTo(PAIR, given)).toEqual([answer(2, 5, 'equal', 'ada'), answer(2, 5, 'right', 'bob')]);
  expect(answersTo({ left: 1, right: 2 }, given)).toEqual([]);
});

test('a pair is open until as many reviewers answered as are wanted; without a name they count as one', () => {
  const plan: PairPlan = { pairs: [PAIR], same: alone(2, 5) };
  const given = [answer(2, 5, 'left', null), answer(2, 5, 'right', null)];
  expect(openPairs(plan, given, { reviewers: 1 })).toEqual([]);
  expect(openPairs(plan, given, { reviewers: 2 })).toEqual([PAIR]);
  expect(openPairs(plan, [...given, answer(5, 2, 'left', 'ada')], { reviewers: 2 })).toEqual([]);
});

test('attempts that said the same share a score, and pairs that were not planned do not count', () => {
  const plan: PairPlan = {
    pairs: [{ left: 0, right: 1 }],
    same: new Map([
      [0, [0, 3, 4]],
      [1, [1]],
      [2, [2]],
    ]),
  };
  const scores = comparedScores(plan, [answer(1, 0, 'left', 'ada'), answer(1, 2, 'right', 'ada')]);
  expect([...scores.keys()].toSorted((a, b) => a - b)).toEqual([0, 1, 3, 4]);
  expect(scores.get(3)).toBe(scores.get(0));
  expect(scores.get(1)).toBeGreaterThan(scores.get(0)!);
});

test('a group whose attempts all said the same needs no review', () => {
  const plan: PairPlan = { pairs: planPairs([0], 3, 1), same: new Map([[0, [0, 1, 2]]]) };
  expect(openPairs(plan, [], { reviewers: 1 })).toEqual([]);
  expect([...comparedScores(plan, []).values()]).toEqual([0.5, 0.5, 0.5]);
});

test('scores of several reviewers are averaged, each by its last one, in any order', () => {
  const given = [score(0, 0.1, 'ada'), score(0, 0.2, 'bob'), score(1, 1, 'ada'), score(0, 0.4, 'ada')];
  expect(meanScores(given)).toEqual(
    new Map([
      [0, 0.30000000000000004],
      [1, 1],
    ]),
  );
  expect(meanScores([given[3]!, given[1]!, given[2]!]).get(0)).toBe(meanScores(given).get(0));
});

function alone(...attempts: number[]): Map<number, number[]> {
  return new Map(attempts.map((attempt) => [attempt, [attempt]]));
}

function answer(left: number, right: number, given: PairAnswer, by: string | null): ComparedPair {
  return { left, right, answer: given, by };
}

function score(attempt: number, reward: number, by: string) {
  return { attempt, reward, by };
}
