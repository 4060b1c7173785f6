/** Firing a schedule by hand: now, or for times that have passed. */
import type { Command } from '../command-line/command.ts';
import { stringFlag } from '../command-line/command.ts';
import { WorkFailed, EXIT, UsageError } from '../command-line/errors.ts';
import { formatTime } from '../terminal/format.ts';

export const scheduleTrigger: Command = {
  name: 'schedule trigger',
  summary: 'fire now, even if paused; skipped while a run is in progress',
  usage: 'schedule trigger NAME',
  positionals: ['NAME'],
  options: {},
  async run(context) {
    const { ScheduleOverlapPolicy } = await import('@temporalio/client');
    const { withSchedule } = await import('./server.ts');
    await withSchedule(context, async (handle, name) => {
      const { runningActions } = (await handle.describe()).info;
      if (runningActions.length > 0)
        throw new WorkFailed(
          `${name} was not triggered because a run is in progress; see temper schedule show ${name}`,
        );
      // By default Temporal lets a trigger overlap: two runs would begin with the same checkpoint.
      await handle.trigger(ScheduleOverlapPolicy.SKIP);
    });
    context.output.line(`${context.positionals[0]} was triggered; see temper schedule show ${context.positionals[0]}`);
    return EXIT.ok;
  },
};

export const scheduleBackfill: Command = {
  name: 'schedule backfill',
  summary: 'run a schedule for each of its times in a past period, one after the other',
  usage: 'schedule backfill NAME --from T --to T',
  details: [
    'T is an ISO time: 2026-11-21T03:00:00Z, or 2026-11-21 for midnight UTC. The period includes both ends.',
    'A time whose run is complete is skipped; one whose run failed continues that run. Backfill ignores a pause of the',
    'schedule, even a pause caused by one of its own runs.',
  ],
  positionals: ['NAME'],
  options: {
    from: { type: 'string', placeholder: 'T', description: 'start of the period' },
    to: { type: 'string', placeholder: 'T', description: 'end of the period, not in the future' },
  },
  async run(context) {
    const span = { start: parseTime(context.flags, 'from'), end: parseTime(context.flags, 'to') };
    if (span.start > span.end)
      throw new UsageError(
        `--from must not be after --to, got ${formatTime(span.start)} and ${formatTime(span.end)}; change one`,
      );
    if (span.end.getTime() > Date.now())
      throw new UsageError(
        `--to must not be after now, got ${formatTime(span.end)}; the schedule fires at future times itself`,
      );
    const { ScheduleOverlapPolicy } = await import('@temporalio/client');
    const { withSchedule } = await import('./server.ts');
    // Temporal leaves the very start out. Each run begins with what the one before ended with: they wait for each other.
    const start = new Date(span.start.getTime() - 1);
    await withSchedule(context, (handle) =>
      handle.backfill({ start, end: span.end, overlap: ScheduleOverlapPolicy.BUFFER_ALL }),
    );
    context.output.line(
      `${context.positionals[0]} runs for each of its times from ${formatTime(span.start)} to ${formatTime(span.end)}, one run after the other`,
    );
    return EXIT.ok;
  },
};

/** Without a zone a time would mean another one on another machine. */
const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/;

function parseTime(flags: Parameters<typeof stringFlag>[0], flag: string): Date {
  const text = stringFlag(flags, flag);
  if (text === null) throw new UsageError(`--${flag} is missing; pass --${flag} 2026-11-21T03:00:00Z`);
  const time = new Date(ISO_TIME.test(text) ? text : Number.NaN);
  if (!Number.isNaN(time.getTime())) return time;
  throw new UsageError(
    `--${flag} must be an ISO time with its zone, or a date, got ${JSON.stringify(text)}; pass --${flag} 2026-11-21T03:00:00Z`,
  );
}
