/** Verdicts of reviewed groups: what is still missing, and the rewards that follow from a ledger. */
import { expect, test } from 'vitest';

import type { ExternalConfig, ReviewConfig } from '../../../../core/contract/contract.ts';
import { judgeByGiven, missingAttempts } from '../../../../store/records/rewards/given-verdict.ts';
import type { GivenRow } from '../../../../store/records/rewards/given-rewards.ts';
import { planGroupPairs } from '../../../../store/records/rewards/review-verdict.ts';
import type { AttemptRecord, Rollouts } from '../../../../store/records/groups/trajectories.ts';

const SHA = 'b'.repeat(64);
const RULES = { minimumGroupSize: 2, truncated: 'mask', overlongBuffer: 0, overlongPenalty: 1 } as const;
const at = { schema: 1, note: null, key: null, at: '2026-11-27T08:00:00.000Z' } as const;

/** An attempt for each word; null: it failed. */
function played(...words: (string | null)[]): Rollouts {
  const attempts = words.map((said, attempt): AttemptRecord => {
    const key = 'same question';
    const call = { key, message: { role: 'assistant', content: said }, turn: 0 } as AttemptRecord['calls'][number];
    const status = said === null ? 'failed' : 'ok';
    const rest = { failure: null, metrics: {}, logs: [], truncated: false, unclaimedAnswers: 0 };
    return { attempt, status, reward: said === null ? null : attempt / 10, ...rest, calls: [call] };
  });
  const header = {
    schema: 1,
    inputsSha256: SHA,
    branch: 0,
    step: 1,
    adapterSha256: null,
    attempts: words.length,
  } as const;
  return { header, attempts };
}

const reviewed = (more: Partial<ReviewConfig> = {}): { review: ReviewConfig } => {
  const weights = { review: 1, agent: 0 };
  return { review: { pairwise: true, comparisonsPerAttempt: 2, reviewers: 1, question: null, weights, ...more } };
};
const compared = (left: number, right: number, answer: 'left' | 'right' | 'equal', by = 'ada'): GivenRow => {
  return { ...at, kind: 'comparison', left, right, answer, by };
};
const scored = (attempt: number, reward: number, by = 'ada'): GivenRow => ({
  ...at,
  kind: 'reward',
  attempt,
  reward,
  by,
});
const judge = (rollouts: Rollouts, givenRows: GivenRow[], external: ExternalConfig) =>
  judgeByGiven({ rollouts, sha256: SHA }, givenRows, { ...RULES, external });
const missing = (rollouts: Rollouts, givenRows: GivenRow[], external = reviewed()) =>
  missingAttempts(rollouts, givenRows, external).map(({ attempt }) => attempt);

test('the pairs of a group follow from its file: failed attempts are left out, and equal ones are shown once', () => {
  const rollouts = played('a', 'b', 'a', null, 'c', 'b');
  const { pairs, same } = planGroupPairs(rollouts, { comparisonsPerAttempt: 2 });
  expect(same).toEqual(
    new Map([
      [0, [0, 2]],
      [1, [1, 5]],
      [4, [4]],
    ]),
  );
  expect(pairs).toHaveLength(3);
  expect(planGroupPairs(structuredClone(rollouts), { comparisonsPerAttempt: 2 }).pairs).toEqual(pairs);
});

test('answers to all pairs complete a group, and the same answers give the same bytes whoever gave them', () => {
  const rollouts = played('a', 'b', 'c', null);
  const answers = planGroupPairs(rollouts, { comparisonsPerAttempt: 2 }).pairs.map(({ left, right }) =>
    compared(left, right, left < right ? 'left' : 'right'),
  );
  expect(missing(rollouts, answers.slice(1)).length).toBe(2);
  expect(missing(rollouts, answers)).toEqual([]);
  const verdict = judge(rollouts, answers, reviewed());
  expect(verdict.judge).toBe('review');
  const [a, b, c, failed] = verdict.rewards;
  expect([a! > b!, b! > c!, failed]).toEqual([true, true, null]);
  expect(b).toBe(0.5);
  expect(verdict.scores).toEqual(verdict.rewards);
  const others = answers.toReversed().map((given) => ({ ...given, by: 'bob', at: '2027-01-01T00:00:00.000Z' }));
  expect(JSON.stringify(judge(rollouts, others, reviewed()))).toBe(JSON.stringify(verdict));
});

test('the agent’s own reward counts by its weight', () => {
  const { rewards, scores } = judge(played('a', 'a'), [], reviewed({ weights: { review: 2, agent: 10 } }));
  expect(scores).toEqual([0.5, 0.5]);
  expect(rewards).toEqual([1, 2]);
});

test('once the time is over, attempts that nobody reviewed are dropped, or get the score that the agent says', () => {
  const rollouts = played('a', 'b', 'c', 'd');
  const { pairs } = planGroupPairs(rollouts, { comparisonsPerAttempt: 2 });
  const one = pairs[0]!;
  const givenRows = [compared(one.left, one.right, 'left')];
  const dropped = judge(rollouts, givenRows, reviewed()).rewards;
  expect(dropped.filter((reward) => reward !== null)).toHaveLength(2);
  expect(dropped[one.left]).toBe(0.819448);
  const filled = judge(rollouts, givenRows, { ...reviewed(), onTimeout: 0.25 }).rewards;
  expect(filled.filter((reward) => reward === 0.25)).toHaveLength(2);
  expect(judge(rollouts, givenRows, { ...reviewed(), minimum: 3 }).rewards).toEqual([null, null, null, null]);
});

test('scores one by one: each attempt waits for as many reviewers as are wanted, and gets their mean', () => {
  const rollouts = played('a', 'b', null);
  const external = reviewed({ pairwise: false, reviewers: 2 });
  const givenRows = [scored(0, 0.2), scored(0, 0.4, 'bob'), scored(1, 1), scored(1, 0.5)];
  expect(missing(rollouts, givenRows, external)).toEqual([1]);
  expect(missing(rollouts, [...givenRows, scored(1, 0, 'bob')], external)).toEqual([]);
  const { rewards } = judge(rollouts, [...givenRows, scored(1, 0, 'bob')], external);
  expect(rewards[0]).toBeCloseTo(0.3);
  expect(rewards.slice(1)).toEqual([0.25, null]);
});
