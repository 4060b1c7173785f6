import type { Command, CommandContext } from '../command-line/command.ts';
import { JSON_OPTION, stringFlag } from '../command-line/command.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import { openProjectStore } from '../connections/project-store.ts';
import type { ScheduleSummary } from './describe.ts';
import { scheduleBackfill, scheduleTrigger } from './schedule-fire.ts';
import { scheduleCreate } from './schedule-create.ts';

const scheduleList: Command = {
  name: 'schedule list',
  summary: 'list schedules with their next time and last result',
  usage: 'schedule list [--json]',
  positionals: [],
  options: { json: JSON_OPTION },
  async run(context) {
    const { withSchedules } = await import('./server.ts');
    const { listSchedules } = await import('./describe.ts');
    const { scheduleTable } = await import('./view.ts');
    const store = await openProjectStore(context.project, context.env);
    const found = await withSchedules(context, (schedules) => listSchedules(schedules, store));
    if (context.flags['json'] === true) printJson(context.output, found);
    else if (found.length === 0) context.output.line('no schedules yet; create one with temper schedule create AGENT');
    else context.output.line(scheduleTable(found));
    return EXIT.ok;
  },
};

const scheduleShow: Command = {
  name: 'schedule show',
  summary: 'show one schedule: its next times, its last run, and why it is paused',
  usage: 'schedule show NAME [--json]',
  positionals: ['NAME'],
  options: { json: JSON_OPTION },
  async run(context) {
    const { scheduleLines } = await import('./view.ts');
    const summary = await readSummary(context);
    if (context.flags['json'] === true) printJson(context.output, summary);
    else for (const line of scheduleLines(summary)) context.output.line(line);
    return EXIT.ok;
  },
};

const schedulePause: Command = {
  name: 'schedule pause',
  summary: 'pause a schedule; a run in progress continues',
  usage: 'schedule pause NAME [--reason TEXT]',
  positionals: ['NAME'],
  options: { reason: { type: 'string', placeholder: 'TEXT', description: 'shown with the schedule' } },
  async run(context) {
    const { withSchedule } = await import('./server.ts');
    const reason = stringFlag(context.flags, 'reason') ?? 'paused by temper schedule pause';
    await withSchedule(context, (handle) => handle.pause(reason));
    context.output.line(`${context.positionals[0]} is paused; a run in progress continues`);
    return EXIT.ok;
  },
};

const scheduleResume: Command = {
  name: 'schedule resume',
  summary: 'resume a schedule; times missed during the pause are skipped',
  usage: 'schedule resume NAME',
  positionals: ['NAME'],
  options: {},
  async run(context) {
    const { withSchedule } = await import('./server.ts');
    await withSchedule(context, (handle) => handle.unpause('resumed by temper schedule resume'));
    const [next] = (await readSummary(context)).nextTimes;
    context.output.line(`${context.positionals[0]} is resumed; next time: ${next ?? 'none'}`);
    return EXIT.ok;
  },
};

const scheduleDelete: Command = {
  name: 'schedule delete',
  summary: 'delete a schedule; its runs stay, and a run in progress continues',
  usage: 'schedule delete NAME',
  positionals: ['NAME'],
  options: {},
  async run(context) {
    const { withSchedule } = await import('./server.ts');
    // A schedule that is not there is deleted without a word by Temporal: a typo should be told.
    await withSchedule(context, async (handle) => {
      await handle.describe();
      await handle.delete();
    });
    context.output.line(`${context.positionals[0]} is deleted; its runs stay, and a run in progress continues`);
    return EXIT.ok;
  },
};

async function readSummary(context: CommandContext): Promise<ScheduleSummary> {
  const { withSchedule } = await import('./server.ts');
  const { summariseSchedule } = await import('./describe.ts');
  const store = await openProjectStore(context.project, context.env);
  return withSchedule(context, async (handle) => summariseSchedule(await handle.describe(), store));
}

export const schedule: Command = {
  name: 'schedule',
  summary: 'retrain on a schedule, each time from the newest checkpoint',
  usage: 'schedule ACTION …',
  details: ['See temper schedule ACTION --help. Every action needs a Temporal server; temper dev starts one.'],
  positionals: [],
  options: {},
  actions: [
    scheduleCreate,
    scheduleList,
    scheduleShow,
    schedulePause,
    scheduleResume,
    scheduleTrigger,
    scheduleBackfill,
    scheduleDelete,
  ],
  run() {
    throw new UsageError('ACTION is missing; see temper schedule --help');
  },
};
