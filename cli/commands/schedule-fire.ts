/** Firing a schedule by hand: now, or for times that have passed. */
import type { Command } from '../command.ts';
import { stringFlag } from '../command.ts';
import { CommandFailed, EXIT, UsageError } from '../errors.ts';
import { formatTime } from '../format.ts';

export const scheduleTrigger: Command = {
  name: 'schedule trigger',
  summary: 'fire now, paused or not; skipped while one of its runs is under way',
  usage: 'schedule trigger NAME',
  positionals: ['NAME'],
  options: {},
  async run(context) {
    const { ScheduleOverlapPolicy } = await import('@temporalio/client');
    const { withSchedule } = await import('../schedule/server.ts');
    await withSchedule(context, async (handle, name) => {
      const { runningActions } = (await handle.describe()).info;
      if (runningActions.length > 0)
        throw new CommandFailed(
          `${name} was not triggered: a run of it is under way; see temper schedule show ${name}`,
        );
      // By default Temporal lets a trigger overlap: two runs would begin with the same checkpoint.
      await handle.trigger(ScheduleOverlapPolicy.SKIP);
    });
    context.output.line(`${context.positionals[0]} fires; see temper schedule show ${context.positionals[0]}`);
    return EXIT.ok;
  },
};

export const scheduleBackfill: Command = {
  name: 'schedule backfill',
  summary: 'fire for each time of a span that has passed, one run after the other',
  usage: 'schedule backfill NAME --from T --to T',
  details: [
    'T is an ISO time: 2026-11-21T03:00:00Z, or 2026-11-21 for its midnight in UTC. Both ends belong to the span.',
    'A time whose run is complete trains nothing again; one whose run failed goes on with it. A pause holds back',
    'none of these times, not even the pause that one of them causes by failing.',
  ],
  positionals: ['NAME'],
  options: {
    from: { type: 'string', placeholder: 'T', description: 'the first time' },
    to: { type: 'string', placeholder: 'T', description: 'the last time, not after now' },
  },
  async run(context) {
    const span = { start: parseTime(context.flags, 'from'), end: parseTime(context.flags, 'to') };
    if (span.start > span.end)
      throw new UsageError(
        `--from must not be after --to, got ${formatTime(span.start)} and ${formatTime(span.end)}; change one`,
      );
    if (span.end.getTime() > Date.now())
      throw new UsageError(
        `--to must not be after now, got ${formatTime(span.end)}; the schedule fires by itself then`,
      );
    const { ScheduleOverlapPolicy } = await import('@temporalio/client');
    const { withSchedule } = await import('../schedule/server.ts');
    // Temporal leaves the very start out. Each run begins with what the one before ended with: they wait for each other.
    const start = new Date(span.start.getTime() - 1);
    await withSchedule(context, (handle) =>
      handle.backfill({ start, end: span.end, overlap: ScheduleOverlapPolicy.BUFFER_ALL }),
    );
    context.output.line(
      `${context.positionals[0]} fires for each of its times from ${formatTime(span.start)} to ${formatTime(span.end)}, one run after the other`,
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
