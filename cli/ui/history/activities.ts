/** Activities of an execution by its history, and their spans: the wait for a worker, earlier attempts, the work. */
import type proto from '@temporalio/proto';

import type { LaneSpan } from '../../../views/api/run-views.ts';
import type { LaneName, PlacedSpan } from '../../../views/runs/lane-spans.ts';
import { isScheduled, type RawPending } from '../../../workers/connection/pending-activity.ts';
import {
  failureText,
  hostOf,
  isLoss,
  payloadText,
  timeOf,
  timestampMs,
  type Failure,
  type HistoryEvent,
} from './event-values.ts';

type Attributes = proto.temporal.api.history.v1.IActivityTaskStartedEventAttributes;

/** An activity from its being scheduled on; times are milliseconds since 1970. */
export interface Activity {
  readonly name: string;
  readonly label: string;
  readonly scheduledAt: number;
  /** Start of the last attempt, which is all that a history has; null if it was never started. */
  startedAt: number | null;
  attempt: number;
  identity: string | null;
  /** Why the attempt before failed. */
  lastFailure: Failure | null;
  ended: {
    readonly at: number;
    readonly how: 'completed' | 'failed' | 'timed out' | 'cancelled';
    readonly failure: Failure | null;
  } | null;
}

/** Activities in the order in which they were scheduled. */
export function readActivities(events: readonly HistoryEvent[], pending: readonly RawPending[]): Activity[] {
  const activities = new Map<string, Activity>();
  for (const event of events) addActivity(activities, event);
  for (const each of pending) addPending(activities, each);
  return [...activities.values()];
}

function addActivity(activities: Map<string, Activity>, event: HistoryEvent): void {
  const scheduled = event.activityTaskScheduledEventAttributes;
  const at = timestampMs(event.eventTime) ?? 0;
  if (scheduled) activities.set(String(event.eventId), newActivity(event, scheduled.activityType?.name ?? '', at));
  const started = event.activityTaskStartedEventAttributes;
  if (started) start(activities.get(String(started.scheduledEventId)), started, at);
  end(activities, endingOf(event), at);
}

interface Ending {
  readonly how: NonNullable<Activity['ended']>['how'];
  readonly attributes: { readonly scheduledEventId?: unknown; readonly failure?: Failure | null };
}

function endingOf(event: HistoryEvent): Ending | null {
  const endings: readonly [Ending['how'], Ending['attributes'] | null | undefined][] = [
    ['completed', event.activityTaskCompletedEventAttributes],
    ['failed', event.activityTaskFailedEventAttributes],
    ['timed out', event.activityTaskTimedOutEventAttributes],
    ['cancelled', event.activityTaskCanceledEventAttributes],
  ];
  const found = endings.find(([, attributes]) => attributes);
  return found?.[1] ? { how: found[0], attributes: found[1] } : null;
}

function end(activities: Map<string, Activity>, ending: Ending | null, at: number): void {
  const activity = ending && activities.get(String(ending.attributes.scheduledEventId));
  if (activity && ending) activity.ended = { at, how: ending.how, failure: ending.attributes.failure ?? null };
}

function newActivity(event: HistoryEvent, name: string, scheduledAt: number): Activity {
  const label = payloadText(event.userMetadata?.summary) ?? name;
  return { name, label, scheduledAt, startedAt: null, attempt: 1, identity: null, lastFailure: null, ended: null };
}

function start(activity: Activity | undefined, { attempt, identity, lastFailure }: Attributes, at: number): void {
  if (activity === undefined) return;
  activity.startedAt = at;
  activity.attempt = attempt ?? 1;
  activity.identity = identity ?? null;
  activity.lastFailure = lastFailure ?? null;
}

/** A history has the start of an activity only once it has ended. */
function addPending(activities: Map<string, Activity>, pending: RawPending): void {
  const { activityType, lastStartedTime, attempt, lastWorkerIdentity, lastFailure } = pending;
  const activity = [...activities.values()].findLast(
    (each) => each.name === activityType?.name && each.ended === null && each.startedAt === null,
  );
  if (activity === undefined) return;
  activity.startedAt = isScheduled(pending) ? null : timestampMs(lastStartedTime);
  activity.attempt = attempt ?? 1;
  activity.identity = lastWorkerIdentity ?? null;
  activity.lastFailure = lastFailure ?? null;
}

const LANES: Readonly<Record<string, LaneName>> = {
  prepare: 'rollout',
  rollout: 'rollout',
  playGroups: 'rollout',
  gather: 'rollout',
  judgeGroup: 'judge',
  judgeGiven: 'judge',
  judge: 'judge',
  choose: 'judge',
  initialise: 'train',
  train: 'train',
  evaluate: 'eval',
  checkpoint: 'checkpoint',
  record: 'checkpoint',
  amend: 'checkpoint',
  locate: 'checkpoint',
};

/** A shorter wait for a worker is how Temporal hands work out. */
const LEAST_WAIT_MS = 1000;

export function spansOfActivity(activity: Activity): PlacedSpan[] {
  const lane = LANES[activity.name] ?? 'worker';
  const { startedAt, attempt, ended } = activity;
  // The state for display is written all the time: only what went wrong with it is worth a span.
  if (activity.name === 'record' && attempt === 1 && ended?.how === 'completed') return [];
  const spans = [...spansBefore(activity), ...(startedAt === null ? [] : [worked(activity, startedAt)])];
  return spans.map((span) => ({ lane, span }));
}

/** Earlier attempts, or the wait for a worker. */
function spansBefore(activity: Activity): LaneSpan[] {
  const { scheduledAt, startedAt, attempt, ended, lastFailure } = activity;
  const until = startedAt ?? ended?.at ?? null;
  if (attempt > 1 && lastFailure !== null) {
    const kind = isLoss(lastFailure) ? 'lost' : 'retry';
    return [spanOf(activity, scheduledAt, until, { attempt: attempt - 1, kind, failure: lastFailure })];
  }
  const isWait = startedAt === null || startedAt - scheduledAt >= LEAST_WAIT_MS;
  return isWait ? [spanOf(activity, scheduledAt, until, { attempt, kind: 'wait', failure: null })] : [];
}

function worked(activity: Activity, startedAt: number): LaneSpan {
  const { attempt, ended, lastFailure } = activity;
  const kind = ended?.how === 'failed' ? 'failure' : ended?.how === 'timed out' ? 'lost' : 'work';
  const span = spanOf(activity, startedAt, ended?.at ?? null, {
    attempt,
    kind,
    failure: ended?.failure ?? lastFailure,
  });
  return ended?.how === 'cancelled' ? { ...span, label: `${span.label} · cancelled` } : span;
}

interface SpanFacts extends Pick<LaneSpan, 'attempt' | 'kind'> {
  readonly failure: Failure | null;
}

function spanOf({ label, identity }: Activity, from: number, to: number | null, facts: SpanFacts): LaneSpan {
  const { failure, ...told } = facts;
  const host = told.kind === 'wait' || told.kind === 'retry' || told.kind === 'lost' ? null : hostOf(identity);
  return {
    label,
    step: numberAfter(label, 'step'),
    group: numberAfter(label, 'group'),
    startedAt: timeOf(from),
    endedAt: to === null ? null : timeOf(to),
    host,
    failure: failure === null ? null : failureText(failure),
    ...told,
  };
}

/** A summary names step and group: `step 3 · group 0 · scenario 12`. */
function numberAfter(label: string, word: 'step' | 'group'): number | null {
  const found = new RegExp(`\\b${word} (\\d+)`).exec(label)?.[1];
  return found === undefined ? null : Number(found);
}
