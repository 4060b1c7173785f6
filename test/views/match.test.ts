import { expect, test } from 'vitest';
import type { AttemptQuery, AttemptRow } from '../../views/api/attempt-views.ts';
import { BestMatches, rowMatcher } from '../../views/index/match.ts';

const ROW: AttemptRow = {
  id: '0.1.0.0',
  branch: 0,
  step: 1,
  group: 0,
  attempt: 0,
  scenario: 'first',
  reward: 0.5,
  advantage: 0,
  failure: null,
  truncated: false,
  turns: 2,
  sampledTokens: 10,
  tools: ['search'],
  metrics: { moves: 3, win: 1 },
  seconds: null,
  use: 'trained',
};

test.each<[AttemptQuery, boolean]>([
  [{ minReward: 0.5, maxReward: 0.5 }, true],
  [{ minReward: 0.6 }, false],
  [{ maxReward: 0.4 }, false],
  [{ metric: 'moves<=3' }, true],
  [{ metric: 'moves < 3' }, false],
  [{ metric: 'moves!=3' }, false],
  [{ metric: 'winRate=1' }, true],
  [{ metric: ' moves ==3 ' }, true],
  [{ metric: 'moves>2<4' }, false],
  [{ metric: 'other>=0' }, false],
  [{ tool: 'search', scenario: 'first', truncated: false }, true],
  [{ tool: 'search', scenario: 'second' }, false],
  [{ failure: 'any' }, false],
])('%j of a row: %s', (query, isMatch) => {
  expect(rowMatcher(query)(ROW)).toBe(isMatch);
});

test.each(['moves', '<3', 'moves<', 'moves<.', 'moves<3x', `${'a'.repeat(200)}<3`])(
  '%s is no filter of a metric',
  (metric) => {
    expect(() => rowMatcher({ metric })).toThrow('metric must be a name, one of');
  },
);

test('an attempt that failed has no reward to compare, and is found by its failure', () => {
  const failed = { ...ROW, reward: null, failure: 'AgentFailed' };
  const queries: AttemptQuery[] = [{ minReward: -1 }, { maxReward: 1 }, { failure: 'any' }, { failure: 'AgentFailed' }];
  expect(queries.map((query) => rowMatcher(query)(failed))).toEqual([false, false, true, true]);
});

test.each<[NonNullable<AttemptQuery['sort']>, string[]]>([
  ['reward', ['low', 'high', 'none']],
  ['-reward', ['high', 'low', 'none']],
  ['newest', ['none', 'high', 'low']],
  ['oldest', ['low', 'high', 'none']],
])('sorted by %s, rows without a number come last', (sort, ids) => {
  const best = new BestMatches(sort, 10);
  for (const [step, id, reward] of [
    [3, 'none', null],
    [2, 'high', 1],
    [1, 'low', 0],
  ] as const)
    best.add({ row: { ...ROW, id, step, reward } });
  expect(best.sorted().map(({ row }) => row.id)).toEqual(ids);
});
