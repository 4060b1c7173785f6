import { nameCheckpoints } from '../../store/records/find-checkpoint.ts';
import { promotionsInEffect, readPromotions, type Promotion } from '../../store/records/promotions.ts';
import { requireRun } from '../../store/records/run-reader.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { EXIT } from '../command-line/errors.ts';
import { formatNumber } from '../../core/format.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { PromoteContext } from './command.ts';
import { promotionJson } from './promote.ts';

export async function listPromotions({ flags, project, env, output }: PromoteContext, run: string): Promise<number> {
  const store = await openProjectStore(project, env);
  await requireRun(store, run);
  const rows = await readPromotions(store, run);
  const names = await nameCheckpoints(
    store,
    rows.map(({ checkpoint }) => checkpoint),
  );
  const current = promotionsInEffect(rows).at(-1);
  if (flags.json) {
    printJson(
      output,
      rows.map((row, index) => ({ ...promotionJson(row, names[index]!), isProduction: row === current })),
    );
    return EXIT.ok;
  }
  if (rows.length === 0)
    output.line(`nothing of ${run} was promoted; promote a checkpoint: temper promote ${run}@STEP`);
  else
    output.line(
      createTable(
        HEAD,
        rows.map((row, index) => cellsOf(row, names[index]!, row === current)),
      ),
    );
  return EXIT.ok;
}

const HEAD = ['', 'time', 'what', 'checkpoint', 'held-out reward', 'by', 'reason'];

function cellsOf(
  { at, kind, evaluation, comparison, by, reason }: Promotion,
  named: string,
  isCurrent: boolean,
): string[] {
  const compared = Object.entries(comparison ?? {}).map(([name, value]) => `${name} ${formatNumber(value)}`);
  const told = [reason ?? [], compared].flat().join(', ');
  const mark = isCurrent ? '*' : '';
  return [mark, at, kind, named, formatNumber(evaluation?.reward), by ?? '–', told || '–'];
}
