import { defaultPayloadConverter } from '@temporalio/common';
import { msToTs } from '@temporalio/common/lib/time.js';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import type { RawPending } from '../../../workers/connection/pending-activity.ts';
import { summariseWaits } from '../../../workers/metrics/run-waits.ts';

const { PENDING_ACTIVITY_STATE_SCHEDULED: SCHEDULED, PENDING_ACTIVITY_STATE_STARTED: STARTED } =
  proto.temporal.api.enums.v1.PendingActivityState;
const NOW_MS = Date.parse('2026-11-27T12:00:00Z');
const at = (secondsAgo: number) => msToTs(NOW_MS - secondsAgo * 1000);
const since = (secondsAgo: number) => NOW_MS / 1000 - secondsAgo;

function pending(name: string, given: Partial<RawPending>, beat?: object): RawPending {
  const details = beat && { heartbeatDetails: { payloads: [defaultPayloadConverter.toPayload(beat)] } };
  return { activityType: { name }, attempt: 1, state: STARTED, ...details, ...given };
}

test('activities are counted by what they do, and the oldest wait of each kind is told', () => {
  const waiting = (secondsAgo: number) => ({
    attempts: 1,
    reason: 'refused',
    since: new Date(NOW_MS - secondsAgo * 1000).toISOString(),
  });
  const { activities, waits } = summariseWaits(
    [
      pending('rollout', {}),
      pending('rollout', {}, { waiting: waiting(30) }),
      pending('rollout', {}, { waiting: waiting(90) }),
      pending('rollout', {}, { waiting: { ...waiting(5), awaited: 'a hosted model' } }),
      pending('judgeGroup', {}, { judge: 'openai/x', waiting: waiting(20) }),
      pending('train', { state: SCHEDULED, scheduledTime: at(300) }),
      pending('train', { state: SCHEDULED, nextAttemptScheduleTime: at(-60), lastAttemptCompleteTime: at(40) }),
    ],
    NOW_MS,
  );
  expect(activities).toEqual([
    { activity: 'rollout', state: 'running', count: 4 },
    { activity: 'judgeGroup', state: 'running', count: 1 },
    { activity: 'train', state: 'queued', count: 1 },
    { activity: 'train', state: 'retrying', count: 1 },
  ]);
  expect(Object.fromEntries(waits)).toEqual({
    engine: since(90),
    other: since(5),
    judge: since(20),
    worker: since(300),
    retry: since(40),
  });
});
