/** Which groups of an agent with roles are trained. */
import { expect, test } from 'vitest';

import { summariseEval } from '../../../store/records/groups/eval-result.ts';
import { judgeByAgent, summariseGroup } from '../../../store/records/groups/group-result.ts';
import type { CallRecord, Rollouts } from '../../../store/records/groups/trajectories.ts';
import { attemptOf, rolloutsOf } from './made-attempt.ts';

const PLAN = {
  step: 1,
  group: 0,
  scenario: 0,
  minimumGroupSize: 2,
  truncated: 'mask',
  overlongBuffer: 0,
  overlongPenalty: 1,
} as const;
const ROLES = { white: 'main', black: 'b' };

const callOf = (role: string) =>
  ({ role, tokenIds: [1], request: { messages: [] }, message: { content: role } }) as unknown as CallRecord;

function groupOf(rewards: readonly Record<string, number>[], callers = ['white', 'black', 'past']): Rollouts {
  const calls = callers.map(callOf);
  return rolloutsOf(rewards.map((roleRewards, attempt) => attemptOf(attempt, calls, { reward: 0, roleRewards })));
}

function summarise(rollouts: Rollouts, plan: Partial<Parameters<typeof summariseGroup>[0]> = {}) {
  const judged = judgeByAgent(rollouts, 'r', PLAN);
  return summariseGroup({ ...PLAN, roles: ROLES, ...plan }, rollouts, judged, 'j');
}

const opposed = [
  { white: 1, black: -1 },
  { white: -1, black: 1 },
];

test('an evaluation of competing roles counts scenarios beside attempts', () => {
  const { attempts } = groupOf([...opposed, ...opposed]);
  const played = attempts.map((record, index) => ({ ...record, scenario: Math.floor(index / 2) }));
  expect(summariseEval(0, played, 'r')).toMatchObject({ attempts: 4, scenarios: 2 });
  const once = attempts.map((record, scenario) => ({ ...record, scenario }));
  expect(summariseEval(0, once, 'r')).not.toHaveProperty('scenarios');
  const plain = played.map(({ roleRewards: _roles, ...record }) => record);
  expect(summariseEval(0, plain, 'r')).not.toHaveProperty('scenarios');
});

test('an evaluation tells how many of its attempts said the same, if they are nearly all', () => {
  const share = (same: number, other: number, callers = ['white', 'black']) => {
    const rewards = (count: number) => Array.from({ length: count }, () => ({}));
    const { attempts } = groupOf(rewards(same), callers);
    return summariseEval(3, [...attempts, ...groupOf(rewards(other), ['white']).attempts], 'r').sameAnswerShare;
  };
  expect([share(19, 1), share(9, 1), share(8, 2), share(9, 0), share(0, 0)]).toEqual([
    0.95,
    0.9,
    undefined,
    undefined,
    undefined,
  ]);
});

test('a group is trained if the rewards of one role differ, though the attempts earned the same', () => {
  expect(summarise(groupOf(opposed))).toMatchObject({
    use: 'trained',
    rewards: [0, 0],
    roleRewards: { white: [1, -1], black: [-1, 1] },
  });
});

test("a group in which each role's rewards are the same is trained with a running mean alone", () => {
  const same = groupOf([opposed[0]!, opposed[0]!]);
  expect(summarise(same).use).toBe('no-variance');
  expect(summarise(same, { baseline: 'rae' }).use).toBe('trained');
});

test('a role that did not play has no reward', () => {
  expect(summarise(groupOf([{ white: 1 }, { white: 0, black: 1 }])).roleRewards).toEqual({
    black: [null, 1],
    white: [1, 0],
  });
});

test("an opponent's tokens train nothing", () => {
  expect(summarise(groupOf(opposed, ['past'])).use).toBe('no-sampled-tokens');
});
