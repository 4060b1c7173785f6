/** Text for a pending activity: what it waits for, since when, and what would unblock it. */
import { FAILURES } from '../../core/contract/failures.ts';
import {
  isScheduled,
  readHeartbeat,
  toMs,
  type Heartbeat,
  type PendingTime,
  type RawPending,
} from '../../workers/connection/pending-activity.ts';
import type { PendingActivity } from './pending-activity.ts';

type Failure = RawPending['lastFailure'];

/** Heartbeats come every second and are forwarded every two. */
const SILENT_MS = 6000;
const START_WORKER: Readonly<Record<string, string>> = {
  initialise: 'start a GPU worker, or temper dev',
  train: 'start a GPU worker, or temper dev',
  deployStage: 'start temper dev or temper worker',
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
  const remedy = attempt > 2 && isUnexpected(raw.lastFailure) ? `; ${MEND}` : '';
  const failing = lastFailure === null ? null : `last failure: ${lastFailure}${remedy}`;
  const failed = failing === null ? '' : `; ${failing}`;
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

/** The first failure may be the last: a worker that ended, a connection that was lost. */
const MEND =
  'it is tried again without end: if its code is at fault, correct it and restart its worker, and the run continues; to give up, run temper stop RUN --now';

/** Failures of Temper's own types say what to do; others are of a library or of a mistake in code. */
function isUnexpected(failure: Failure): boolean {
  const type = failure?.applicationFailureInfo?.type;
  return typeof type === 'string' && !Object.hasOwn(FAILURES, type);
}

/** A task that nobody took waits in its first attempt; each failure, and each worker that is lost with it, begins another. */
export function describeWorkflowTask(queue: string, pollers: number, attempt: number, since: string): PendingActivity {
  const reason =
    pollers === 0
      ? `no worker runs workflows on queue ${queue}; start temper dev or temper worker`
      : attempt > 1
        ? `the workers on queue ${queue} fail to run it, or take too long; see their logs`
        : `the workers on queue ${queue} have not run it yet; they are busy or do not respond`;
  const tried = attempt > 1 ? `, attempt ${attempt}` : '';
  const text = `workflow${tried} on queue ${queue}, since ${since}: ${reason}`;
  const none = { lastFailure: null, nextTryAt: null };
  return { activity: 'workflow', attempt, queue, pollers, since, ...none, reason, text };
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

function describeProgress({ step, phase, since, done, of, groups, judge, resources }: Heartbeat): string | null {
  const among = groups === undefined ? '' : `${groups.done} of ${groups.of} groups done, `;
  const at = step === undefined ? '' : `step ${step}: ${among}`;
  if (phase !== undefined) return `${at}${PHASES[phase] ?? phase}${since === undefined ? '' : ` since ${since}`}`;
  if (judge !== undefined) return `${at}judged by ${judge}`;
  if (done === undefined || of === undefined) return null;
  return `${at}${done} of ${of} attempts played${resources === undefined ? '' : describeResources(resources)}`;
}

function describeResources({ settingUp, ending }: NonNullable<Heartbeat['resources']>): string {
  const parts = { 'set up': settingUp, ended: ending };
  const told = Object.entries(parts).flatMap(([what, count]) => (count === 0 ? [] : `${what} for ${count}`));
  return `, resources are being ${told.join(' and ')}`;
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
  const several = wait.attempts === 0 ? 'it is waiting' : `${wait.attempts} attempts are waiting`;
  const who = wait.attempts === 1 ? '1 attempt is waiting' : several;
  const since = wait.since === undefined ? '' : `, since ${wait.since}`;
  const { awaited = 'the engine' } = wait;
  const next = wait.nextTryAt ? `; next try at ${wait.nextTryAt}` : '';
  return {
    text: `${who} for ${awaited}${since}: ${wait.reason}${next}`,
    reason: `waiting for ${awaited}: ${wait.reason}`,
  };
}

/** Wait of a judge whose provider limits the rate or is unavailable. */
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

/** Failure type and message; a timeout has no type and a text of its own. */
function describeFailure(failure: Failure): string | null {
  if (!failure?.message) return null;
  const type = failure.applicationFailureInfo?.type;
  return type ? `${type}: ${failure.message}` : failure.message;
}

function iso(time: PendingTime): string | null {
  const ms = toMs(time);
  return ms === null ? null : new Date(ms).toISOString();
}

function seconds(ms: number): string {
  return `${Math.max(1, Math.round(ms / 1000))} s`;
}
