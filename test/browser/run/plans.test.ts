import { expect, test } from 'vitest';
import { formatAttemptName } from '../../../browser/attempt/places.ts';
import { placeLineage } from '../../../browser/run/place-lineage.ts';
import { periodOf, placeLanes, spansInSight } from '../../../browser/run/plan-lanes.ts';
import { filtersOf } from '../../../browser/search/filters.ts';
import type { LaneSpan, LineageNode } from '../../../views/api/run-views.ts';

const SECOND = 1000;
const time = (second: number): string => new Date(second * SECOND).toISOString();

function span(from: number, to: number | null, more: Partial<LaneSpan> = {}): LaneSpan {
  const [startedAt, endedAt] = [time(from), to === null ? null : time(to)];
  const kind = 'work';
  return { label: 'x', branch: 0, step: 1, group: 0, startedAt, endedAt, attempt: 1, host: null, kind, ...more };
}

test('spans at the same time get lines of their own, others share one', () => {
  const view = { lanes: [{ name: 'rollout', spans: [span(0, 2), span(1, 3), span(2, 4)] }] } as const;
  const [lane] = placeLanes(view, 10 * SECOND);
  expect(lane!.spans.map(({ line }) => line)).toEqual([0, 1, 0]);
  expect(lane!.lines).toBe(2);
});

test('a span in progress reaches to now; lanes without spans are left out', () => {
  const lanes = [
    { name: 'train', spans: [span(0, null)] },
    { name: 'judge', spans: [] },
  ] as const;
  expect(periodOf({ lanes }, 7 * SECOND)).toEqual({ from: 0, to: 7 * SECOND });
  expect(placeLanes({ lanes }, 7 * SECOND).map(({ name }) => name)).toEqual(['train']);
  expect(periodOf({ lanes: [] }, 7 * SECOND)).toBeNull();
});

test('ordinary spans that share a pixel are drawn once; a retry is always drawn', () => {
  const spans = [span(0, 0.1), span(0.2, 0.3), span(0.4, 0.5, { attempt: 2 }), span(50, 60)];
  const [lane] = placeLanes({ lanes: [{ name: 'rollout', spans }] }, 100 * SECOND);
  const shown = spansInSight(lane!, { from: 0, to: 100 * SECOND }, 100);
  expect(shown.map(({ span: { startedAt } }) => startedAt)).toEqual([time(0), time(0.4), time(50)]);
  expect(spansInSight(lane!, { from: 20 * SECOND, to: 40 * SECOND }, 100)).toEqual([]);
});

test('branches stand below what they continue; a fork counts on from the step that it started from', () => {
  const node = (id: string, step: number, from: LineageNode['from'] = null): LineageNode => {
    const [run, branch] = id.split('/');
    return { id, run: run!, branch: Number(branch), step, from, state: 'completed' };
  };
  const placed = placeLineage([
    node('demo/0', 18),
    node('demo/1', 30, { id: 'demo/0', step: 12 }),
    node('fork/0', 5, { id: 'demo/1', step: 20 }),
    node('fork/1', 7, { id: 'fork/0', step: 3 }),
  ]);
  expect(placed.map(({ id, fromLine, start, end }) => [id, fromLine, start, end])).toEqual([
    ['demo/0', null, 0, 18],
    ['demo/1', 0, 12, 30],
    ['fork/0', 1, 20, 25],
    ['fork/1', 2, 23, 27],
  ]);
});

test('ids of attempts are said in words; filters of the address have one order', () => {
  expect(formatAttemptName('1.3.2.5')).toBe('step 3, group 2, attempt 5');
  expect(formatAttemptName('eval.0.10.4')).toBe('evaluation after step 10, attempt 4');
  expect(filtersOf(new URLSearchParams('tool=search&other=1&text=a b&kind='))).toBe('text=a+b&tool=search');
});
