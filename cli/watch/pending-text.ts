/** A pending activity in words: pure. What it waits for, since when, and what would unblock it. */
import { defaultPayloadConverter } from '@temporalio/common';
import { tsToMs } from '@temporalio/common/lib/time.js';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import proto from '@temporalio/proto';

export interface PendingActivity {
  readonly activity: string;
  readonly attempt: number;
  readonly queue: string | null;
  /** Workers that listen on its queue; null where it does not wait for one, or where the server did not say. */
  readonly pollers: number | null;
  readonly lastFailure: string | null;
  /** ISO 8601: since when a worker has it, or since when it waits for one. */
  readonly since: string | null;
  readonly nextTryAt: string | null;
  /** What keeps it, in words that stay the same while it lasts; null where it simply runs. */
  readonly reason: string | null;
  /** The whole of it as a sentence, with times. */
  readonly text: string;
}

export type RawPending = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];

const { PendingActivityState } = proto.temporal.api.enums.v1;

/** Not begun, or between two tries. */
export function isScheduled({ state }: RawPending): boolean {
  return state === PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED;
}

type Time = RawPending['lastStartedTime'];
type Failure = RawPending['lastFailure'];

/** What workers tell with each heartbeat: TypeScript's how far a group is, the GPU worker's what it does. */
interface Heartbeat {
  step?: number;
  phase?: string;
  since?: string;
  done?: number;
  of?: number;
  /** Of an activity that plays several groups: how many are done. */
  groups?: { done: number; of: number };
  /** Who is asked for a verdict. */
  judge?: string;
  waiting?: { attempts: number; reason: string; since?: string; nextTryAt?: string | null } | null;
}

/** Beats come every second, and are passed on every two. */
const SILENT_MS = 6000;
const START_WORKER: Readonly<Record<string, string>> = {
  initialise: 'start a GPU worker, or temper dev',
  train: 'start a GPU worker, or temper dev',
};
const START_AGENT = 'start temper worker --agent FILE, or temper train';

export function describePending(
  raw: RawPending,
  queue: string | null,
  pollers: number | null,
  nowMs: number,
): PendingActivity {
  const activity = raw.activityType?.name ?? 'activity';
  const attempt = raw.attempt ?? 1;
  const lastFailure = describeFailure(raw.lastFailure);
  const wait = isScheduled(raw) ? waitForWorker(raw, activity, queue, pollers, nowMs) : underWay(raw, nowMs);
  const place = [activity, attempt > 1 ? `attempt ${attempt}` : null].filter((part) => part !== null).join(', ');
  const failed = lastFailure === null ? '' : `; last failure: ${lastFailure}`;
  const failing = lastFailure === null ? null : `last failure: ${lastFailure}`;
  const reason = [wait.reason, failing].filter((part) => part !== null).join('; ');
  return {
    activity,
    attempt,
    queue,
    pollers,
    lastFailure,
    since: wait.since,
    nextTryAt: wait.nextTryAt,
    reason: reason === '' ? null : reason,
    text: `${place}${queue === null ? '' : ` on queue ${queue}`}: ${wait.text}${failed}`,
  };
}

interface Wait {
  text: string;
  reason: string | null;
  since: string | null;
  nextTryAt: string | null;
}

function waitForWorker(
  raw: RawPending,
  activity: string,
  queue: string | null,
  pollers: number | null,
  nowMs: number,
): Wait {
  const nextMs = toMs(raw.nextAttemptScheduleTime);
  if (nextMs !== null && nextMs > nowMs) {
    const nextTryAt = new Date(nextMs).toISOString();
    const text = `retry in ${seconds(nextMs - nowMs)}`;
    return { text, reason: null, since: iso(raw.lastAttemptCompleteTime), nextTryAt };
  }
  const since = iso(nextMs === null ? raw.scheduledTime : raw.nextAttemptScheduleTime);
  const waits = `waiting for a worker${since === null ? '' : `, since ${since}`}`;
  if (pollers === 0) {
    const reason = `no worker polls queue ${queue}; ${START_WORKER[activity] ?? START_AGENT}`;
    return { text: `${waits}: ${reason}`, reason, since, nextTryAt: null };
  }
  return { text: `${waits}${describeBusy(pollers)}`, reason: null, since, nextTryAt: null };
}

function describeBusy(pollers: number | null): string {
  if (pollers === null) return '';
  return pollers === 1 ? ' (the only poller is busy)' : ` (all ${pollers} pollers are busy)`;
}

function underWay(raw: RawPending, nowMs: number): Wait {
  const beat = readHeartbeat(raw);
  const engine = beat.waiting ? describeEngineWait(beat.waiting, beat.judge) : null;
  const silence = describeSilence(raw, nowMs);
  const since = iso(raw.lastStartedTime);
  const parts = [`running since ${since}`, describeProgress(beat), engine?.text ?? null, silence?.text ?? null];
  return {
    text: parts.filter((part) => part !== null).join('; '),
    reason: silence?.reason ?? engine?.reason ?? null,
    since,
    nextTryAt: beat.waiting?.nextTryAt ?? null,
  };
}

function describeSilence(raw: RawPending, nowMs: number): { text: string; reason: string } | null {
  const heardMs = Math.max(toMs(raw.lastHeartbeatTime) ?? 0, toMs(raw.lastStartedTime) ?? 0);
  if (heardMs === 0 || nowMs - heardMs < SILENT_MS) return null;
  const worker = raw.lastWorkerIdentity ? `the worker ${raw.lastWorkerIdentity}` : 'its worker';
  const reason = `${worker} is not responding; another worker takes over after the heartbeat timeout`;
  return { text: `no heartbeat for ${seconds(nowMs - heardMs)}: ${reason}`, reason };
}

function describeProgress({ step, phase, since, done, of, groups, judge }: Heartbeat): string | null {
  const among = groups === undefined ? '' : `${groups.done} of ${groups.of} groups done, `;
  const at = step === undefined ? '' : `step ${step}: ${among}`;
  if (phase !== undefined) return `${at}${PHASES[phase] ?? phase}${since === undefined ? '' : ` since ${since}`}`;
  if (judge !== undefined) return `${at}judged by ${judge}`;
  return done === undefined || of === undefined ? null : `${at}${done} of ${of} attempts played`;
}

const PHASES: Readonly<Record<string, string>> = {
  load: 'loading the policy',
  wait: 'waiting for the device',
  train: 'training',
  commit: 'committing',
  publish: 'publishing',
};

function describeEngineWait(
  wait: NonNullable<Heartbeat['waiting']>,
  judge: string | undefined,
): { text: string; reason: string } {
  if (judge !== undefined) return describeJudgeWait(wait, judge);
  const who = wait.attempts === 1 ? '1 attempt is waiting' : `${wait.attempts} attempts are waiting`;
  const since = wait.since === undefined ? '' : `, since ${wait.since}`;
  const next = wait.nextTryAt ? `; next try at ${wait.nextTryAt}` : '';
  return {
    text: `${who} for the engine${since}: ${wait.reason}${next}`,
    reason: `waiting for the engine: ${wait.reason}`,
  };
}

/** A provider that limits its rate, or one that is away. */
function describeJudgeWait(
  { reason, since, nextTryAt }: NonNullable<Heartbeat['waiting']>,
  judge: string,
): { text: string; reason: string } {
  const waits = `waiting for the judge ${judge}`;
  const next = nextTryAt ? `; next try at ${nextTryAt}` : '';
  return {
    text: `${waits}${since === undefined ? '' : `, since ${since}`}: ${reason}${next}`,
    reason: `${waits}: ${reason}`,
  };
}

function readHeartbeat({ heartbeatDetails }: RawPending): Heartbeat {
  const payload = heartbeatDetails?.payloads?.[0];
  if (!payload) return {};
  try {
    return defaultPayloadConverter.fromPayload<Heartbeat | null>(payload) ?? {};
  } catch {
    return {};
  }
}

/** With the type that names the boundary; a time-out has none, and its own words. */
function describeFailure(failure: Failure): string | null {
  if (!failure?.message) return null;
  const type = failure.applicationFailureInfo?.type;
  return type ? `${type}: ${failure.message}` : failure.message;
}

function toMs(time: Time): number | null {
  const ms = time ? tsToMs(time) : 0;
  return ms > 0 ? ms : null;
}

function iso(time: Time): string | null {
  const ms = toMs(time);
  return ms === null ? null : new Date(ms).toISOString();
}

function seconds(ms: number): string {
  return `${Math.max(1, Math.round(ms / 1000))} s`;
}
