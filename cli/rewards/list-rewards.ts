/** `temper rewards`: the attempts of a run that wait for a reward, from the store alone. */
import { formatAttemptId } from '../../core/attempt-id.ts';
import { deadlineOf } from '../../core/plan-given.ts';
import { listAwaited, type AwaitedGroup } from '../../store/records/awaited-groups.ts';
import { requireRun } from '../../store/records/run-reader.ts';
import { inPlayOrder, type AttemptRecord } from '../../store/records/trajectories.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { viewMessage } from '../report/attempt-view.ts';
import { formatDuration, plural } from '../terminal/format.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { rewardsCommand } from './command.ts';
import { wakeOverServer } from './wake.ts';

const LAST_CHARACTERS = 60;

interface AwaitedAttempt {
  readonly attempt: string;
  readonly scenario: string;
  readonly step: number;
  readonly group: number;
  readonly playedAt: string | null;
  /** Time at which its group is decided without it; null: never. */
  readonly deadline: string | null;
  readonly lastMessage: string;
}

export async function listRewards(context: CommandContext<typeof rewardsCommand>): Promise<number> {
  const { args, flags, project, env, output } = context;
  const store = await openProjectStore(project, env);
  const { file } = await requireRun(store, args.run);
  const groups = file.config.external === undefined ? [] : await listAwaited(store, args.run);
  const complete = groups.filter(({ missing }) => missing.length === 0);
  const attempts = groups.flatMap((group) => group.missing.map((record) => describe(group, record, file.config)));
  if (flags.json) printJson(output, { run: args.run, awaited: attempts, completeGroups: complete.length });
  else if (file.config.external === undefined)
    output.line(`the run ${args.run} waits for no rewards: its agent has no reward: external({ … })`);
  else {
    if (attempts.length > 0) output.line(renderTable(attempts, Date.now()));
    output.line(
      `${plural(attempts.length, 'reward')} of the run ${args.run} awaited, in ${plural(groups.length - complete.length, 'group')}`,
    );
    if (complete.length > 0)
      output.line(`${plural(complete.length, 'group')} complete, and decided once the run continues`);
  }
  // A signal that was lost is sent again.
  if (complete.length > 0) await wakeOverServer(context, store, args.run);
  return EXIT.ok;
}

function describe(
  { place, scenarioId, playedAt }: AwaitedGroup,
  record: AttemptRecord,
  config: Parameters<typeof deadlineOf>[0],
): AwaitedAttempt {
  const deadline = deadlineOf(config, playedAt ?? undefined);
  return {
    attempt: formatAttemptId({ ...place, attempt: record.attempt }),
    scenario: scenarioId,
    step: place.step,
    group: place.group,
    playedAt: playedAt === null ? null : new Date(playedAt).toISOString(),
    deadline: deadline === null ? null : new Date(deadline).toISOString(),
    lastMessage: lastMessage(record),
  };
}

function renderTable(attempts: readonly AwaitedAttempt[], now: number): string {
  const head = ['attempt', 'scenario', 'step', 'waiting', 'last message'];
  return createTable(
    head,
    attempts.map(({ attempt, scenario, step, playedAt, lastMessage: last }) => [
      attempt,
      clip(scenario, 30),
      String(step),
      playedAt === null ? '–' : formatDuration(Math.max(0, now - Date.parse(playedAt)) / 1000),
      clip(last, LAST_CHARACTERS),
    ]),
  );
}

/** The text that the attempt ended with. */
function lastMessage({ calls }: AttemptRecord): string {
  const last = inPlayOrder(calls).at(-1);
  return last === undefined ? '' : viewMessage(last.message).text;
}

/** One line: a model wrote it. */
function clip(text: string, most: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}
