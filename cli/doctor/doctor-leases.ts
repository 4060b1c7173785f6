/** `temper doctor leases`: what attempts, groups and workers hold, and what dead ones have left. */
import { setTimeout as sleep } from 'node:timers/promises';

import { WATCH_MS } from '../../play/resources/lease-holder.ts';
import { endLeases, LeaseWatch, type EndedLease, type SeenLease } from '../../play/resources/leaked-leases.ts';
import { agentsWithLeases, Leases } from '../../store/records/groups/leases.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { loadAgent, type AgentFile } from '../planning/load-agent.ts';
import { formatDuration, plural } from '../../core/reports/format.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { doctorLeasesCommand } from './command.ts';

interface AgentLeases {
  readonly leases: Leases;
  readonly seen: readonly SeenLease[];
  readonly deadHolders: readonly string[];
}

/** A row of the table: `problem` is why it could not be ended, null if it was, absent if nobody tried. */
type Row = SeenLease & Partial<Pick<EndedLease, 'problem'>>;

export async function doctorLeases(context: CommandContext<typeof doctorLeasesCommand>): Promise<number> {
  const { args, flags, project, cwd, env, output } = context;
  const agentFile = args.agent === null ? null : await loadAgent(args.agent, cwd);
  const store = await openProjectStore(project, env);
  const names = agentFile === null ? await agentsWithLeases(store) : [agentFile.agent.name];
  const found = await watch(store, names, context);
  const rows = agentFile === null ? found.flatMap(({ seen }) => seen) : await endAll(agentFile, found);
  const left = rows.filter((row) => stateOf(row) === 'leaked' || stateOf(row) === 'not ended').length;
  if (flags.json) printJson(output, { store: store.uri, leases: rows.map(viewJson) });
  else {
    if (rows.length > 0) output.line(renderRows(rows));
    output.line(summarise(rows, left, agentFile !== null));
  }
  return left === 0 ? EXIT.ok : EXIT.failed;
}

/** Twice, unless every process that holds something is known to be dead. */
async function watch(
  store: Store,
  names: readonly string[],
  { output, signal }: CommandContext<typeof doctorLeasesCommand>,
): Promise<AgentLeases[]> {
  const watched = names.map((name) => {
    const leases = new Leases(store, name);
    return { leases, watch: new LeaseWatch(leases) };
  });
  const look = (): Promise<AgentLeases[]> =>
    Promise.all(
      watched.map(async (each) => {
        const { leases: seen, deadHolders } = await each.watch.look();
        return { leases: each.leases, seen, deadHolders };
      }),
    );
  const first = await look();
  const unknown = first.flatMap(({ seen }) => seen.filter(({ state }) => state !== 'leaked'));
  if (unknown.length === 0) return first;
  const holders = plural(new Set(unknown.map(({ lease }) => lease.holder)).size, 'holder');
  output.errorLine(`watching ${holders} of leases for ${WATCH_MS / 1000} s, to tell which of them live`);
  await sleep(WATCH_MS, undefined, { signal });
  return look();
}

async function endAll({ agent }: AgentFile, found: readonly AgentLeases[]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { leases, seen, deadHolders } of found) {
    const due = seen.filter(({ state }) => state !== 'in use');
    rows.push(...seen.filter(({ state }) => state === 'in use'));
    rows.push(...(await endLeases(leases, agent.resources ?? {}, due, deadHolders)));
  }
  return rows;
}

function stateOf({ state, problem }: Row): SeenLease['state'] | 'ended' {
  if (problem === undefined) return state;
  return problem === null ? 'ended' : 'not ended';
}

function renderRows(rows: readonly Row[]): string {
  const head = ['lease', 'agent', 'resource', 'run', 'step', 'group', 'scenario', 'attempt', 'age', 'state'];
  return createTable(head, rows.map(cellsOf));
}

function cellsOf(row: Row): string[] {
  const { id, agent, resource, place, scenario, attempt, startedAt } = row.lease;
  const step = place && (place.branch === 0 ? `${place.step}` : `${place.branch}.${place.step}`);
  const where = [place?.run, step, place?.part, scenario, attempt].map((cell) => `${cell ?? '–'}`);
  const age = formatDuration(Math.max(0, Date.now() - Date.parse(startedAt)) / 1000);
  const problem = problemOf(row);
  return [id, agent, resource, ...where, age, problem === null ? stateOf(row) : `${stateOf(row)}: ${problem}`];
}

/** Why it was not ended, if somebody tried. */
function problemOf({ problem, failure }: Row): string | null {
  return problem === undefined ? (failure?.message ?? null) : problem;
}

function summarise(rows: readonly Row[], left: number, hasTried: boolean): string {
  if (rows.length === 0) return 'no leases';
  const count = (state: string) => rows.filter((row) => stateOf(row) === state).length;
  const used = `${plural(count('in use'), 'lease')} in use`;
  if (hasTried) return `${used}, ${count('ended')} ended, ${left} left`;
  const remedy = left === 0 ? '' : '; name the agent’s file to end them: temper doctor leases ./agent.ts';
  return `${used}, ${left} leaked${remedy}`;
}

function viewJson(row: Row): object {
  const { id, agent, resource, scope, place, scenario, attempt, startedAt, host, pid } = row.lease;
  const { run = null, branch = null, step = null, part: group = null } = place ?? {};
  const told = { id, agent, resource, scope, run, branch, step, group, scenario, attempt, startedAt, host, pid };
  return { ...told, data: row.data, state: stateOf(row), problem: problemOf(row) };
}
