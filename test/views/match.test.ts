import { expect, test } from 'vitest';
import type { AttemptRow, AttemptsView } from '../../views/api/attempt-views.ts';
import { filterRows, parseAttemptQuery, rowMatcher, type AttemptQuery } from '../../views/api/attempt-query.ts';
import { BestMatches } from '../../views/index/search-files.ts';

const ROW: AttemptRow = {
  id: '0.1.0.0',
  branch: 0,
  step: 1,
  group: 0,
  attempt: 0,
  scenario: 'first',
  answer: 'yes',
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

const ROWS: AttemptRow[] = [
  { ...ROW, id: '1.2.0.0', branch: 1, step: 2, reward: null, metrics: { moves: 3 }, failure: 'AgentFailed' },
  { ...ROW, id: '0.2.0.1', step: 2, attempt: 1, reward: 1, sampledTokens: 5, metrics: { moves: 1, win: 0 } },
  { ...ROW, id: '0.2.e.0', step: 2, group: null, use: 'eval', truncated: true },
  ROW,
];

test.each([
  'metric=moves==3',
  'metric=moves!=3',
  'metric=winRate>=0.5',
  'metric=moves',
  'sort=reward',
  'sort=-reward',
  'sort=tokens&kind=train&fromStep=2',
  'sort=best',
  'kind=eval&truncated=true',
  'kind=both',
  'minReward=much',
  'failure=any&limit=1',
])('an export answers %s as a server does', (text) => {
  const query = new URLSearchParams(text);
  const view: AttemptsView = {
    total: ROWS.length,
    rows: ROWS,
    excerpts: {},
    index: { indexed: 0, known: 0, isComplete: true },
  };
  const ofServer = () => {
    const asked = parseAttemptQuery(query);
    const best = new BestMatches(asked.sort ?? 'newest', asked.limit ?? 100);
    const isKind = ({ use }: AttemptRow) => asked.kind === undefined || (use === 'eval') === (asked.kind === 'eval');
    for (const row of ROWS)
      if (row.step >= (asked.fromStep ?? 0) && isKind(row) && rowMatcher(asked)(row)) best.add({ row });
    return best.sorted().map(({ row }) => row);
  };
  const outcome = (answer: () => readonly AttemptRow[]) => {
    try {
      return answer();
    } catch (error) {
      return String(error);
    }
  };
  expect(outcome(() => filterRows(view, parseAttemptQuery(query)).rows)).toEqual(outcome(ofServer));
});
