/** `temper rewards`: the attempts of a run that wait for a reward, from the store alone. */
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import type { AwaitedAttempt, AwaitedList } from '../../views/api/attempt-views.ts';
import { readAwaited } from '../../views/attempts/awaited.ts';
import { planLinks } from '../review/links.ts';
import { formatDuration, plural } from '../../core/reports/format.ts';
import { clipLine, printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { rewardsCommand } from './command.ts';
import { wakeOverServer } from '../../operations/wake.ts';

const LAST_CHARACTERS = 60;

export async function listRewards(context: CommandContext<typeof rewardsCommand>): Promise<number> {
  const { args, flags, project, env, output } = context;
  const links = planLinks(flags, env);
  const store = await openProjectStore(project, env);
  const found = await readAwaited(store, args.run);
  const list = found ?? { run: args.run, awaited: [], completeGroups: 0 };
  const linked = links === null ? list : await links.addTo(list, store);
  if (flags.json) printJson(output, linked);
  else if (found === null)
    output.line(`the run ${args.run} waits for no rewards: its agent has no reward: external({ … })`);
  else for (const line of listLines(linked)) output.line(line);
  // A signal that was lost is sent again.
  if (list.completeGroups > 0) await wakeOverServer(context, store, args.run);
  return EXIT.ok;
}

function listLines({ run, awaited, completeGroups, link: review }: AwaitedList): string[] {
  const groups = new Set(awaited.map(({ step, group }) => `${step}.${group}`)).size;
  return [
    ...(awaited.length > 0 ? [renderTable(awaited, Date.now())] : []),
    ...awaited.flatMap(({ attempt, link }) => (link === undefined ? [] : [`${attempt}  ${link}`])),
    ...(review === undefined ? [] : [`review  ${review}`]),
    `${plural(awaited.length, 'reward')} of the run ${run} awaited, in ${plural(groups, 'group')}`,
    ...(completeGroups > 0 ? [`${plural(completeGroups, 'group')} complete, and decided once the run continues`] : []),
  ];
}

function renderTable(attempts: readonly AwaitedAttempt[], now: number): string {
  const head = ['attempt', 'scenario', 'step', 'waiting', 'last message'];
  return createTable(
    head,
    attempts.map(({ attempt, scenario, step, playedAt, lastMessage: last }) => [
      attempt,
      clipLine(scenario, 30),
      String(step),
      playedAt === null ? '–' : formatDuration(Math.max(0, now - Date.parse(playedAt)) / 1000),
      clipLine(last.trim(), LAST_CHARACTERS),
    ]),
  );
}
