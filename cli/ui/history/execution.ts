/** One execution of a run's workflow by its history: activities with their retries, messages, and worker processes. Pure. */
import type { LaneSpan } from '../../../views/api/run-views.ts';
import type { PlacedSpan } from '../../../views/runs/lane-spans.ts';
import type { RawPending } from '../../../workers/connection/pending-activity.ts';
import { readActivities, spansOfActivity } from './activities.ts';
import { failureText, hostOf, timeOf, timestampMs, type Failure, type HistoryEvent } from './event-values.ts';

/** A signal, or an update that was accepted. */
export interface RunMessage {
  readonly name: string;
  readonly at: number;
}

export interface Execution {
  readonly spans: readonly PlacedSpan[];
  readonly messages: readonly RunMessage[];
  /** Times of the first and the last event by each worker process. */
  readonly workers: readonly WorkerSpan[];
}

export interface WorkerSpan {
  readonly identity: string;
  readonly from: number;
  readonly to: number;
}

/** `pending`: of an execution that is running, what the server knows of activities that have not ended. */
export function readExecution(events: readonly HistoryEvent[], pending: readonly RawPending[] = []): Execution {
  return {
    spans: [...readActivities(events, pending).flatMap(spansOfActivity), ...lostTasks(events)],
    messages: events.flatMap(messageIn),
    workers: workersIn(events),
  };
}

/** Tasks of the workflow itself that a worker did not finish: it died with them, or the workflow's code failed. */
function lostTasks(events: readonly HistoryEvent[]): PlacedSpan[] {
  const byId = new Map(events.map((event) => [String(event.eventId), event]));
  return events.flatMap((event) => {
    const late = event.workflowTaskTimedOutEventAttributes;
    const failed = event.workflowTaskFailedEventAttributes;
    const ended = late ?? failed;
    if (!ended) return [];
    // A task for the cache of a worker that is gone was never started.
    const started = byId.get(String(ended.startedEventId)) ?? byId.get(String(ended.scheduledEventId));
    return [{ lane: 'worker' as const, span: lostSpan(event, started, failed?.failure ?? null) }];
  });
}

/** `failure`: of the workflow's code; null if the worker was lost. */
function lostSpan(event: HistoryEvent, started: HistoryEvent | undefined, failure: Failure | null): LaneSpan {
  const at = timestampMs(event.eventTime) ?? 0;
  const isLost = failure === null;
  return {
    label: isLost ? 'a worker was lost' : 'a task of the workflow failed',
    step: null,
    group: null,
    startedAt: timeOf(timestampMs(started?.eventTime) ?? at),
    endedAt: timeOf(at),
    attempt: 1,
    host: hostOf(started?.workflowTaskStartedEventAttributes?.identity ?? null),
    failure: isLost ? 'the worker stopped responding' : failureText(failure),
    kind: isLost ? 'lost' : 'failure',
  };
}

function messageIn(event: HistoryEvent): RunMessage[] {
  const signal = event.workflowExecutionSignaledEventAttributes?.signalName;
  const update = event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input?.name;
  const name = signal ?? update;
  return name ? [{ name, at: timestampMs(event.eventTime) ?? 0 }] : [];
}

function workersIn(events: readonly HistoryEvent[]): WorkerSpan[] {
  const seen = new Map<string, WorkerSpan>();
  for (const event of events) {
    const told =
      event.activityTaskStartedEventAttributes ??
      event.activityTaskCompletedEventAttributes ??
      event.workflowTaskStartedEventAttributes ??
      event.workflowTaskCompletedEventAttributes;
    const identity = told?.identity;
    const at = timestampMs(event.eventTime);
    if (!identity || at === null) continue;
    const known = seen.get(identity);
    seen.set(identity, { identity, from: Math.min(at, known?.from ?? at), to: Math.max(at, known?.to ?? at) });
  }
  return [...seen.values()];
}
