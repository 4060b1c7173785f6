/** Actions on a schedule that exists. */
import { ScheduleOverlapPolicy } from '@temporalio/client';
import type { CommandEnvironment } from '../command-line/command.ts';
import { EXIT, UsageError, WorkFailed } from '../command-line/errors.ts';
import { recordScheduleDeleted } from '../../store/records/schedules.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { formatTime } from '../../core/format.ts';
import { printJson } from '../terminal/output.ts';
import { listSchedules, scheduleLines, scheduleTable, summariseSchedule, type ScheduleSummary } from './describe.ts';
import { withSchedule, withSchedules } from './server.ts';

type Asked<Flags> = CommandEnvironment & { readonly flags: Flags };
type Named<Flags = object> = Asked<Flags> & { readonly args: { readonly name: string } };
type Json = { readonly json: boolean };

export async function scheduleList(context: Asked<Json>): Promise<number> {
  const { flags, project, env, output } = context;
  const store = await openProjectStore(project, env);
  const found = await withSchedules(context, (schedules) => listSchedules(schedules, store));
  if (flags.json) printJson(output, found);
  else if (found.length === 0) output.line('no schedules yet; create one with temper schedule create AGENT');
  else output.line(scheduleTable(found));
  return EXIT.ok;
}

export async function scheduleShow(context: Named<Json>): Promise<number> {
  const { flags, args, output } = context;
  const summary = await readSummary(context, args.name);
  if (flags.json) printJson(output, summary);
  else for (const line of scheduleLines(summary)) output.line(line);
  return EXIT.ok;
}

export async function schedulePause(context: Named<{ readonly reason: string | null }>): Promise<number> {
  const { name } = context.args;
  const reason = context.flags.reason ?? 'paused by temper schedule pause';
  await withSchedule(context, name, (handle) => handle.pause(reason));
  context.output.line(`${name} is paused; a run in progress continues`);
  return EXIT.ok;
}

export async function scheduleResume(context: Named): Promise<number> {
  const { name } = context.args;
  await withSchedule(context, name, (handle) => handle.unpause('resumed by temper schedule resume'));
  const [next] = (await readSummary(context, name)).nextTimes;
  context.output.line(`${name} is resumed; next time: ${next ?? 'none'}`);
  return EXIT.ok;
}

export async function scheduleDelete(context: Named): Promise<number> {
  const { name } = context.args;
  // Temporal deletes a missing schedule silently: describe it first, so that a typo is an error.
  await withSchedule(context, name, async (handle) => {
    await handle.describe();
    await handle.delete();
  });
  await recordScheduleDeleted(await openProjectStore(context.project, context.env), name);
  context.output.line(`${name} is deleted; its runs stay, and a run in progress continues`);
  return EXIT.ok;
}

async function readSummary(environment: CommandEnvironment, name: string): Promise<ScheduleSummary> {
  const store = await openProjectStore(environment.project, environment.env);
  return withSchedule(environment, name, async (handle) => summariseSchedule(await handle.describe(), store));
}

export async function scheduleTrigger(context: Named): Promise<number> {
  const { name } = context.args;
  await withSchedule(context, name, async (handle) => {
    const { runningActions } = (await handle.describe()).info;
    if (runningActions.length > 0)
      throw new WorkFailed(`${name} was not triggered because a run is in progress; see temper schedule show ${name}`);
    // Temporal lets a trigger overlap by default: two runs would start from the same checkpoint.
    await handle.trigger(ScheduleOverlapPolicy.SKIP);
  });
  context.output.line(`${name} was triggered; see temper schedule show ${name}`);
  return EXIT.ok;
}

export async function scheduleBackfill(
  context: Named<{ readonly from: string; readonly to: string }>,
): Promise<number> {
  const { flags, args } = context;
  const [from, to] = [parseTime('from', flags.from), parseTime('to', flags.to)];
  if (from > to)
    throw new UsageError(`--from must not be after --to, got ${formatTime(from)} and ${formatTime(to)}; change one`);
  if (to.getTime() > Date.now())
    throw new UsageError(
      `--to must not be after now, got ${formatTime(to)}; the schedule fires at future times itself`,
    );
  // Temporal excludes the exact start. Runs are buffered because each starts from the checkpoint of the one before.
  const start = new Date(from.getTime() - 1);
  await withSchedule(context, args.name, (handle) =>
    handle.backfill({ start, end: to, overlap: ScheduleOverlapPolicy.BUFFER_ALL }),
  );
  context.output.line(
    `${args.name} runs for each of its times from ${formatTime(from)} to ${formatTime(to)}, one run after the other`,
  );
  return EXIT.ok;
}

/** Requires a zone, because a local time depends on the machine. */
const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/;

function parseTime(flag: string, text: string): Date {
  const time = new Date(ISO_TIME.test(text) ? text : Number.NaN);
  if (!Number.isNaN(time.getTime())) return time;
  throw new UsageError(
    `--${flag} must be an ISO time with its zone, or a date, got ${JSON.stringify(text)}; pass --${flag} 2026-11-21T03:00:00Z`,
  );
}
