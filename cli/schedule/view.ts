/** Schedules as text. */
import { shortModelName } from '../../core/base-model-name.ts';
import { plural } from '../terminal/format.ts';
import { createTable } from '../terminal/table.ts';
import type { ScheduleSummary } from './describe.ts';

export function scheduleTable(summaries: readonly ScheduleSummary[]): string {
  const head = ['schedule', 'agent', 'model', 'times', 'state', 'next', 'last run', 'reason'];
  return createTable(
    head,
    summaries.map((summary) => [
      summary.name,
      summary.agent,
      shortModelName(summary.baseModel),
      summary.timing,
      summary.state,
      summary.nextTimes[0] ?? '–',
      describeLast(summary) ?? '–',
      summary.reason ?? '–',
    ]),
  );
}

export function scheduleLines(summary: ScheduleSummary): string[] {
  const { skipped, missed, firings } = summary;
  const rows: [string, string | null][] = [
    ['schedule', `${summary.name}: ${summary.agent} on ${summary.baseModel}, ${plural(summary.steps, 'step')} each`],
    ['times', summary.timing],
    ['state', summary.state],
    ['reason', summary.reason],
    ['next', summary.nextTimes.slice(0, 5).join(' · ') || null],
    ['last run', describeLast(summary)],
    ['starts', `from ${summary.begins ?? 'a new adapter'}`],
    ['fired', `${plural(firings, 'time')}, ${skipped} skipped because a run was in progress, ${missed} missed`],
  ];
  return rows.flatMap(([label, text]) => (text === null ? [] : [`${label.padEnd(9)}  ${text}`]));
}

function describeLast({ lastRun }: ScheduleSummary): string | null {
  return lastRun && `${lastRun.run} (${lastRun.state})`;
}
