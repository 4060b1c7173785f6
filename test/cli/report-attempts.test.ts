import { expect, test } from 'vitest';

import { viewAttempt } from '../../cli/report/attempt-view.ts';
import { planCharts } from '../../cli/report/charts.ts';
import { renderReport } from '../../cli/report/page.ts';
import { defaultRunConfig } from '../../core/run-defaults.ts';
import { newRunState } from '../../core/run-summary.ts';
import type { AttemptRecord, CallRecord } from '../../store/records/trajectories.ts';
import { summary } from './fixture-store.ts';

/** Steps as the trainer told of them: what there was none of has no name. */
function stepsWith(...trained: Record<string, number>[]) {
  return trained.map((train, index) => {
    const step = summary(index + 1, trained.length);
    return { ...step, train: { ...step.train, ...train } };
  });
}

function tableHeads(trained: Record<string, number>[]): string[] {
  const config = defaultRunConfig({ run: 'demo', agent: 'game', baseModel: 'pocket' });
  const page = renderReport({
    state: newRunState(config),
    config,
    steps: stepsWith(...trained),
    attemptSets: [],
    leftOut: [],
    storeUri: 'file:///store',
    version: '1',
  });
  return [...page.matchAll(/<th>([^<]*)<\/th>/g)].map((match) => match[1]!);
}

test('the table of steps counts what happened to rows, where it happened', () => {
  const names = ['truncated', 'forks', 'histories', 'rewardedTurns'];
  expect(tableHeads([{ truncated: 0, forks: 0 }]).filter((head) => names.includes(head))).toEqual([]);
  const heads = tableHeads([
    { truncated: 0, forks: 2 },
    { truncated: 1, forks: 0, histories: 3, rewardedTurns: 4 },
  ]);
  expect(heads.filter((head) => names.includes(head))).toEqual(names);
});

test('a step that does not name a rare counter had none of it', () => {
  const charts = planCharts(stepsWith({}, { histories: 3 }, { histories: 3 }), []);
  expect(charts.find(({ title }) => title === 'histories')?.series[0]?.values).toEqual([0, 3, 3]);
  expect(charts.find(({ title }) => title === 'rewardedTurns')).toBeUndefined();
});

const CALL: CallRecord = {
  key: 'k',
  occurrence: 0,
  label: null,
  request: { messages: [{ role: 'user', content: '?' }] },
  message: { role: 'assistant', content: '!' },
  finishReason: 'stop',
  promptTokenIds: [1],
  tokenIds: [2],
  logprobs: [-1],
  adapterSha256: null,
};

function turnsOf(calls: CallRecord[]) {
  const record: AttemptRecord = {
    attempt: 0,
    status: 'ok',
    failure: null,
    reward: 0.5,
    metrics: {},
    logs: [],
    truncated: false,
    unclaimedAnswers: 0,
    calls,
  };
  return viewAttempt(record, 'one', { own: 0.5, mean: null, explanation: null, judged: {} }).turns;
}

test('a turn shows what it earned by itself', () => {
  const turns = turnsOf([{ ...CALL, turn: 0, reward: 0.5 }, CALL]);
  expect(turns.map(({ reward }) => reward)).toEqual([0.5, null]);
});

test('calls of tools are shown as one would write them, and what is none of them as it is', () => {
  const called = { id: 'a', type: 'function', function: { name: 'search', arguments: '{"query": "</script>"}' } };
  const message = { role: 'assistant', content: 'Let me see.', tool_calls: [called, { odd: 1 }] };
  const [turn] = turnsOf([{ ...CALL, message }]);
  expect(turn!.answer.text).toBe('Let me see.\nsearch({"query": "</script>"})\n{"odd":1}');
});
