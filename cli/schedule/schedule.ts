/** What a person asks and tells a schedule that exists; firing it is in schedule-fire.ts. */
import type { CommandContext, Surroundings } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { recordScheduleDeleted } from '../../store/records/schedules.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { printJson } from '../terminal/output.ts';
import type {
  scheduleDeleteCommand,
  scheduleListCommand,
  schedulePauseCommand,
  scheduleResumeCommand,
  scheduleShowCommand,
} from './command.ts';
import { listSchedules, summariseSchedule, type ScheduleSummary } from './describe.ts';
import { withSchedule, withSchedules } from './server.ts';
import { scheduleLines, scheduleTable } from './view.ts';

export async function scheduleList(context: CommandContext<typeof scheduleListCommand>): Promise<number> {
  const { flags, project, env, output } = context;
  const store = await openProjectStore(project, env);
  const found = await withSchedules(context, (schedules) => listSchedules(schedules, store));
  if (flags.json) printJson(output, found);
  else if (found.length === 0) output.line('no schedules yet; create one with temper schedule create AGENT');
  else output.line(scheduleTable(found));
  return EXIT.ok;
}

export async function scheduleShow(context: CommandContext<typeof scheduleShowCommand>): Promise<number> {
  const { flags, args, output } = context;
  const summary = await readSummary(context, args.name);
  if (flags.json) printJson(output, summary);
  else for (const line of scheduleLines(summary)) output.line(line);
  return EXIT.ok;
}

export async function schedulePause(context: CommandContext<typeof schedulePauseCommand>): Promise<number> {
  const { name } = context.args;
  const reason = context.flags.reason ?? 'paused by temper schedule pause';
  await withSchedule(context, name, (handle) => handle.pause(reason));
  context.output.line(`${name} is paused; a run in progress continues`);
  return EXIT.ok;
}

export async function scheduleResume(context: CommandContext<typeof scheduleResumeCommand>): Promise<number> {
  const { name } = context.args;
  await withSchedule(context, name, (handle) => handle.unpause('resumed by temper schedule resume'));
  const [next] = (await readSummary(context, name)).nextTimes;
  context.output.line(`${name} is resumed; next time: ${next ?? 'none'}`);
  return EXIT.ok;
}

export async function scheduleDelete(context: CommandContext<typeof scheduleDeleteCommand>): Promise<number> {
  const { name } = context.args;
  // A schedule that is not there is deleted without a word by Temporal: a typo should be told.
  await withSchedule(context, name, async (handle) => {
    await handle.describe();
    await handle.delete();
  });
  await recordScheduleDeleted(await openProjectStore(context.project, context.env), name);
  context.output.line(`${name} is deleted; its runs stay, and a run in progress continues`);
  return EXIT.ok;
}

async function readSummary(surroundings: Surroundings, name: string): Promise<ScheduleSummary> {
  const store = await openProjectStore(surroundings.project, surroundings.env);
  return withSchedule(surroundings, name, async (handle) => summariseSchedule(await handle.describe(), store));
}
