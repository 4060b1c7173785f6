/** Answers of one run for an export: its overview whole, and the attempts of some of its steps. */
import { formatGroupId } from '../../../core/names/attempt-id.ts';
import { plural } from '../../../core/reports/format.ts';
import type { AttemptsView, GroupView, StepView } from '../../../views/api/attempt-views.ts';
import type { CurveView } from '../../../views/api/run-views.ts';
import { NotFound } from '../../../views/context/context.ts';
import { sampleEvenly } from '../../../core/numbers/statistics.ts';
import type { SiteWriter } from './site-writer.ts';

/** Answer of a view by its path. */
export type AskView = (path: string) => Promise<object>;

/** How much an export holds: a site that a person can send to others. */
const EXPORT_BOUNDS = {
  /** Steps whose attempts it has: the first, the last, and as many between. */
  stepsWithAttempts: 8,
  groupsPerStep: 6,
  attemptsPerGroup: 32,
  evalsWithAttempts: 4,
  evalAttempts: 24,
  /** Rows of the list of attempts. */
  rows: 500,
  /** Bytes of answers of one run; after that no attempts are added. */
  runBytes: 40 * 1024 ** 2,
} as const;

const OVERVIEW = ['', '/curve', '/lanes', '/checkpoints'];

/** Returns what was left out, in words; null: nothing. */
export async function exportRun(run: string, ask: AskView, writer: SiteWriter): Promise<string | null> {
  const start = `runs/${encodeURIComponent(run)}`;
  const firstBytes = writer.bytes;
  const hasRoom = (): boolean => writer.bytes - firstBytes < EXPORT_BOUNDS.runBytes;
  for (const part of OVERVIEW) await addIfThere(`${start}${part}`, ask, writer);
  const rows = (await ask(`${start}/attempts?limit=${EXPORT_BOUNDS.rows}`)) as AttemptsView;
  await writer.add(`${start}/attempts`, rows);
  await writer.flush();
  const { steps, evals } = (await ask(`${start}/curve`)) as CurveView;
  const chosen = new Set(sampleEvenly(steps, EXPORT_BOUNDS.stepsWithAttempts).map(({ step }) => step));
  const shown = { steps: 0, groups: 0, allGroups: 0, evals: 0 };
  for (const { step } of steps) {
    const view = (await ask(`${start}/steps/${step}`)) as StepView;
    await writer.add(`${start}/steps/${step}`, view);
    await writer.add(`${start}/steps/${step}?branch=${view.branch}`, view);
    shown.allGroups += view.groups.length;
    if (!chosen.has(step) || !hasRoom()) continue;
    shown.steps += 1;
    for (const { branch, step: dealt, group } of view.groups.slice(0, EXPORT_BOUNDS.groupsPerStep)) {
      if (!hasRoom()) break;
      shown.groups += 1;
      await addGroup(`${branch}.${dealt}.${group}`, EXPORT_BOUNDS.attemptsPerGroup, { start, ask, writer });
    }
    await writer.flush();
  }
  for (const { step } of sampleEvenly(evals, EXPORT_BOUNDS.evalsWithAttempts)) {
    const { branch } = (await ask(`${start}/steps/${step}`).catch(() => ({ branch: 0 }))) as { branch: number };
    if (!hasRoom()) break;
    shown.evals += 1;
    await addGroup(formatGroupId({ branch, step, group: null }), EXPORT_BOUNDS.evalAttempts, { start, ask, writer });
    await writer.flush();
  }
  const parts = [
    ...leftOut(shown.groups, shown.allGroups, 'group'),
    ...leftOut(shown.evals, evals.length, 'evaluation'),
    ...leftOut(rows.rows.length, rows.total, 'row of attempts'),
  ];
  return parts.length === 0 ? null : `${run}: ${parts.join(', ')}`;
}

function leftOut(shown: number, all: number, noun: string): string[] {
  return shown >= all
    ? []
    : [`${shown} of ${noun === 'row of attempts' ? `${all} rows of attempts` : plural(all, noun)}`];
}

interface Site {
  readonly start: string;
  readonly ask: AskView;
  readonly writer: SiteWriter;
}

/** The group, and each of its attempts with its tokens. */
async function addGroup(id: string, most: number, { start, ask, writer }: Site): Promise<void> {
  const group = (await addIfThere(`${start}/groups/${id}`, ask, writer)) as GroupView | null;
  for (const { row } of group?.attempts.slice(0, most) ?? []) {
    await addIfThere(`${start}/attempts/${row.id}`, ask, writer);
    await addIfThere(`${start}/attempts/${row.id}/tokens`, ask, writer);
  }
}

/** Null if there is no such thing, such as the group of a step that was never played. */
async function addIfThere(path: string, ask: AskView, writer: SiteWriter): Promise<object | null> {
  try {
    const answer = await ask(path);
    await writer.add(path, answer);
    return answer;
  } catch (error) {
    if (error instanceof NotFound) return null;
    throw error;
  }
}
