/** The activities of a run: what they do, and what they wait for since when, from the Temporal server. */
import type { Client } from '@temporalio/client';
import { runWorkflowId } from '../../core/names/queues.ts';
import { isScheduled, readHeartbeat, toMs, type RawPending } from '../connection/pending-activity.ts';

export interface RunWaits {
  readonly activities: readonly { readonly activity: string; readonly state: ActivityState; readonly count: number }[];
  /** The oldest wait of each kind, as Unix time in seconds. */
  readonly waits: readonly (readonly [Wait, number])[];
}

type ActivityState = 'running' | 'queued' | 'retrying';
type Wait = 'worker' | 'retry' | 'engine' | 'judge' | 'other';

const ANSWER_WITHIN_MS = 3000;

/** Rejects if the server does not answer in time, or does not know the run. */
export async function readWaits(client: Client, storeId: string, run: string): Promise<RunWaits> {
  const handle = client.workflow.getHandle(runWorkflowId(storeId, run));
  const { raw } = await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () => handle.describe());
  return summariseWaits(raw.pendingActivities ?? [], Date.now());
}

export function summariseWaits(pending: readonly RawPending[], nowMs: number): RunWaits {
  const counts = new Map<string, RunWaits['activities'][number]>();
  const oldest = new Map<Wait, number>();
  for (const raw of pending) {
    const activity = raw.activityType?.name ?? 'activity';
    const state = stateOf(raw, nowMs);
    const counted = counts.get(`${activity} ${state}`);
    counts.set(`${activity} ${state}`, { activity, state, count: (counted?.count ?? 0) + 1 });
    const wait = waitOf(raw, state);
    if (wait !== null) oldest.set(wait[0], Math.min(oldest.get(wait[0]) ?? Infinity, wait[1] / 1000));
  }
  return { activities: [...counts.values()], waits: [...oldest] };
}

function stateOf(raw: RawPending, nowMs: number): ActivityState {
  if (!isScheduled(raw)) return 'running';
  return (toMs(raw.nextAttemptScheduleTime) ?? 0) > nowMs ? 'retrying' : 'queued';
}

function waitOf(raw: RawPending, state: ActivityState): [Wait, number] | null {
  if (state === 'running') return waitOfRunning(raw);
  const sinceMs =
    state === 'retrying' ? toMs(raw.lastAttemptCompleteTime) : toMs(raw.nextAttemptScheduleTime ?? raw.scheduledTime);
  if (sinceMs === null) return null;
  return [state === 'retrying' ? 'retry' : 'worker', sinceMs];
}

/** The causes of its attempts' waiting, as its last heartbeat says. */
function waitOfRunning(raw: RawPending): [Wait, number] | null {
  const { waiting, judge } = readHeartbeat(raw);
  const sinceMs = waiting?.since === undefined ? Number.NaN : Date.parse(waiting.since);
  if (!waiting || Number.isNaN(sinceMs)) return null;
  if (judge !== undefined) return ['judge', sinceMs];
  return [waiting.awaited === undefined ? 'engine' : 'other', sinceMs];
}
