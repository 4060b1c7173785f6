/** Actions on a schedule that exists. */
import { ScheduleOverlapPolicy, type ScheduleHandle } from '@temporalio/client';
import { badConfig, WorkFailed } from '../core/contract/failures.ts';
import { formatTime } from '../core/reports/format.ts';
import { recordScheduleDeleted } from '../store/records/production/schedules.ts';
import type { Place } from './operation.ts';
import type { ScheduleSummary } from '../views/api/schedule-views.ts';
import type { Period } from './results.ts';
import { withSchedule, withSchedules } from './schedule-server.ts';
import { listSchedules, summariseSchedule } from './schedule-summary.ts';

export async function findSchedules(place: Place): Promise<ScheduleSummary[]> {
  const store = await place.store();
  return withSchedules(place, (schedules) => listSchedules(schedules, store));
}

export async function findSchedule(place: Place, name: string): Promise<ScheduleSummary> {
  const store = await place.store();
  return withSchedule(place, name, async (handle) => summariseSchedule(await handle.describe(), store));
}

export async function pauseSchedule(place: Place, name: string, reason: string | null): Promise<{ name: string }> {
  await withSchedule(place, name, (handle) => handle.pause(reason ?? 'paused by temper schedule pause'));
  return { name };
}

export async function resumeSchedule(place: Place, name: string): Promise<{ name: string; next: string | null }> {
  await withSchedule(place, name, (handle) => handle.unpause('resumed by temper schedule resume'));
  const { nextTimes } = await findSchedule(place, name);
  return { name, next: nextTimes[0] ?? null };
}

export async function deleteSchedule(place: Place, name: string): Promise<{ name: string }> {
  // Temporal deletes a missing schedule silently: describe it first, so that a typo is an error.
  await withSchedule(place, name, async (handle) => {
    await handle.describe();
    await handle.delete();
  });
  await recordScheduleDeleted(await place.store(), name);
  return { name };
}

export async function triggerSchedule(place: Place, name: string): Promise<{ name: string }> {
  await withSchedule(place, name, (handle) => trigger(handle, name));
  return { name };
}

async function trigger(handle: ScheduleHandle, name: string): Promise<void> {
  const { runningActions } = (await handle.describe()).info;
  if (runningActions.length > 0)
    throw new WorkFailed(`${name} was not triggered because a run is in progress; see temper schedule show ${name}`);
  // Temporal lets a trigger overlap by default: two runs would start from the same checkpoint.
  await handle.trigger(ScheduleOverlapPolicy.SKIP);
}

export async function backfillSchedule(place: Place, { name, ...period }: Period): Promise<Period> {
  const [from, to] = [parseTime('from', period.from), parseTime('to', period.to)];
  if (from > to)
    throw badConfig(`--from must not be after --to, got ${formatTime(from)} and ${formatTime(to)}; change one`);
  if (to.getTime() > Date.now())
    throw badConfig(`--to must not be after now, got ${formatTime(to)}; the schedule fires at future times itself`);
  // Temporal excludes the exact start. Runs are buffered because each starts from the checkpoint of the one before.
  const start = new Date(from.getTime() - 1);
  await withSchedule(place, name, (handle) =>
    handle.backfill({ start, end: to, overlap: ScheduleOverlapPolicy.BUFFER_ALL }),
  );
  return { name, from: formatTime(from), to: formatTime(to) };
}

/** Requires a zone, because a local time depends on the machine. */
const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/;

function parseTime(flag: string, text: string): Date {
  const time = new Date(ISO_TIME.test(text) ? text : Number.NaN);
  if (!Number.isNaN(time.getTime())) return time;
  throw badConfig(
    `--${flag} must be an ISO time with its zone, or a date, got ${JSON.stringify(text)}; pass --${flag} 2026-11-21T03:00:00Z`,
  );
}
