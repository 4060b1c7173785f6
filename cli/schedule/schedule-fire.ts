/** Firing a schedule by hand: now, or for times that have passed. */
import { ScheduleOverlapPolicy } from '@temporalio/client';
import type { CommandContext } from '../command-line/command.ts';
import { WorkFailed, EXIT, UsageError } from '../command-line/errors.ts';
import { formatTime } from '../terminal/format.ts';
import type { scheduleBackfillCommand, scheduleTriggerCommand } from './command.ts';
import { withSchedule } from './server.ts';

export async function scheduleTrigger(context: CommandContext<typeof scheduleTriggerCommand>): Promise<number> {
  const { name } = context.args;
  await withSchedule(context, name, async (handle) => {
    const { runningActions } = (await handle.describe()).info;
    if (runningActions.length > 0)
      throw new WorkFailed(`${name} was not triggered because a run is in progress; see temper schedule show ${name}`);
    // By default Temporal lets a trigger overlap: two runs would begin with the same checkpoint.
    await handle.trigger(ScheduleOverlapPolicy.SKIP);
  });
  context.output.line(`${name} was triggered; see temper schedule show ${name}`);
  return EXIT.ok;
}

export async function scheduleBackfill(context: CommandContext<typeof scheduleBackfillCommand>): Promise<number> {
  const { flags, args } = context;
  const [from, to] = [parseTime('from', flags.from), parseTime('to', flags.to)];
  if (from > to)
    throw new UsageError(`--from must not be after --to, got ${formatTime(from)} and ${formatTime(to)}; change one`);
  if (to.getTime() > Date.now())
    throw new UsageError(
      `--to must not be after now, got ${formatTime(to)}; the schedule fires at future times itself`,
    );
  // Temporal leaves the very start out. Each run begins with what the one before ended with: they wait for each other.
  const start = new Date(from.getTime() - 1);
  await withSchedule(context, args.name, (handle) =>
    handle.backfill({ start, end: to, overlap: ScheduleOverlapPolicy.BUFFER_ALL }),
  );
  context.output.line(
    `${args.name} runs for each of its times from ${formatTime(from)} to ${formatTime(to)}, one run after the other`,
  );
  return EXIT.ok;
}

/** Without a zone a time would mean another one on another machine. */
const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/;

function parseTime(flag: string, text: string): Date {
  const time = new Date(ISO_TIME.test(text) ? text : Number.NaN);
  if (!Number.isNaN(time.getTime())) return time;
  throw new UsageError(
    `--${flag} must be an ISO time with its zone, or a date, got ${JSON.stringify(text)}; pass --${flag} 2026-11-21T03:00:00Z`,
  );
}
