import { readFileSync } from 'node:fs';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { expect, test } from 'vitest';

import type { HistoryEvent } from '../../../cli/ui/history/event-values.ts';
import { readExecution } from '../../../cli/ui/history/execution.ts';
import { toLanes } from '../../../cli/ui/history/history-lanes.ts';
import type { LaneSpan, LanesView } from '../../../views/api/run-views.ts';

/** Events of a history that `test/histories/save.ts` saved on a real server. */
function savedEvents(name: string): HistoryEvent[] {
  const text = readFileSync(new URL(`../../histories/${name}.json`, import.meta.url), 'utf8');
  return historyFromJSON(JSON.parse(text)).events ?? [];
}

const spansOf = (view: LanesView, name: string): readonly LaneSpan[] =>
  view.lanes.find((lane) => lane.name === name)?.spans ?? [];

test('every activity of a run stands in its lane, with step, group and times in order', () => {
  const view = toLanes([readExecution(savedEvents('plain'))]);
  expect(view.source).toBe('temporal');
  const rollouts = spansOf(view, 'rollout').filter(({ step, kind }) => step !== null && kind === 'work');
  expect(rollouts.slice(0, 2).map(({ step, group }) => [step, group])).toEqual([
    [1, 0],
    [1, 1],
  ]);
  expect(spansOf(view, 'eval').map(({ step }) => step)).toEqual([0, 2, 3]);
  for (const { startedAt, endedAt } of view.lanes.flatMap(({ spans }) => spans))
    expect(endedAt! >= startedAt).toBe(true);
  expect(spansOf(view, 'worker').map(({ label }) => label)).toEqual(['temper-test']);
});

test('an activity that was retried shows why and for how long, and then what became of it', () => {
  const trained = spansOf(toLanes([readExecution(savedEvents('plain'))]), 'train').filter(({ step }) => step === 1);
  expect(trained.map(({ kind, attempt, failure }) => [kind, attempt, failure])).toEqual([
    ['retry', 1, 'TrainerFailed: fails once'],
    ['work', 2, 'TrainerFailed: fails once'],
  ]);
  expect(trained[0]!.endedAt).toBe(trained[1]!.startedAt);
});

test('messages stand where they came, and a pause lasts from its update to the next that ends it', () => {
  const waits = spansOf(toLanes([readExecution(savedEvents('steered'))]), 'wait');
  const messages = waits.filter(({ kind }) => kind === 'message');
  expect(messages.map(({ label }) => label)).toEqual(['pause', 'set', 'resume', 'rollback', 'stop']);
  const pauses = waits.filter(({ kind }) => kind === 'pause');
  expect(pauses.map(({ startedAt, endedAt }) => [startedAt, endedAt])).toEqual([
    [messages[0]!.startedAt, messages[2]!.startedAt],
  ]);
});

test('a pause goes on across continue-as-new, and one that nobody ended lasts still', () => {
  const at = (name: string, ms: number) => ({ spans: [], messages: [{ name, at: ms }], workers: [] });
  const pausesOf = (view: LanesView) => spansOf(view, 'wait').filter(({ kind }) => kind === 'pause');
  const [paused] = pausesOf(toLanes([at('pause', 1000), at('resume', 5000)]));
  expect(paused).toMatchObject({ startedAt: new Date(1000).toISOString(), endedAt: new Date(5000).toISOString() });
  expect(pausesOf(toLanes([at('pause', 1000)]))).toMatchObject([{ endedAt: null }]);
});

/** `afterMs` after the first event. */
function event(eventId: number, afterMs: number, attributes: Partial<HistoryEvent>): HistoryEvent {
  return {
    eventId,
    eventTime: { seconds: 1000 + Math.floor(afterMs / 1000), nanos: (afterMs % 1000) * 1e6 },
    ...attributes,
  } as unknown as HistoryEvent;
}

const TIMED_OUT = { message: 'activity Heartbeat timeout', timeoutFailureInfo: { timeoutType: 4 } };
const scheduled = (eventId: number, afterMs: number, name: string) =>
  event(eventId, afterMs, { activityTaskScheduledEventAttributes: { activityType: { name } } });

test('a worker that stopped beating is a loss, not a retry', () => {
  const events = [
    scheduled(5, 0, 'train'),
    event(9, 12_000, {
      activityTaskStartedEventAttributes: {
        scheduledEventId: 5,
        attempt: 2,
        identity: '12@host-b',
        lastFailure: TIMED_OUT,
      },
    } as unknown as Partial<HistoryEvent>),
    event(10, 14_000, {
      activityTaskCompletedEventAttributes: { scheduledEventId: 5, identity: '12@host-b' },
    } as unknown as Partial<HistoryEvent>),
  ];
  const [lost, worked] = spansOf(toLanes([readExecution(events)]), 'train');
  expect(lost).toMatchObject({ kind: 'lost', attempt: 1, host: null });
  expect(lost!.failure).toContain('stopped responding');
  expect(worked).toMatchObject({ kind: 'work', attempt: 2, host: 'host-b' });
  expect(new Date(lost!.endedAt!).getTime() - new Date(lost!.startedAt).getTime()).toBe(12_000);
});

test('an activity in progress is told by the server, and has no end', () => {
  const pending = {
    activityType: { name: 'train' },
    state: 2,
    attempt: 3,
    lastWorkerIdentity: '7@gpu',
    lastStartedTime: { seconds: 1030, nanos: 0 },
    lastFailure: { message: 'out of memory' },
  };
  const { spans } = readExecution([scheduled(5, 0, 'train')], [pending as never]);
  expect(spans.map(({ span }) => [span.kind, span.attempt, span.endedAt === null, span.host])).toEqual([
    ['retry', 2, false, null],
    ['work', 3, true, 'gpu'],
  ]);
});

test('an activity that nobody takes waits for a worker', () => {
  expect(readExecution([scheduled(5, 0, 'rollout')]).spans).toMatchObject([
    { lane: 'rollout', span: { kind: 'wait', endedAt: null, failure: null } },
  ]);
});

test('a task of the workflow that timed out shows the worker that was lost with it', () => {
  const events = [
    event(3, 0, { workflowTaskStartedEventAttributes: { identity: '3@host-a' } }),
    event(4, 10_000, {
      workflowTaskTimedOutEventAttributes: { startedEventId: 3 },
    } as unknown as Partial<HistoryEvent>),
  ];
  const lost = spansOf(toLanes([readExecution(events)]), 'worker').find(({ kind }) => kind === 'lost');
  expect(lost).toMatchObject({ label: 'a worker was lost', host: 'host-a', failure: 'the worker stopped responding' });
});
