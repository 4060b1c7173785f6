import { join } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { requireRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { RunView } from '../../views/api/run-views.ts';
import type { ViewContext } from '../../views/context/context.ts';
import { openPageIndex } from '../../views/index/page-index.ts';
import { STATE_FOLDER } from '../../workers/project/folders.ts';
import { writeWhole } from '../command-line/files.ts';
import { exportRun } from '../pages/export-run.ts';
import { AnswerFile, exportInfo, FILE_BOUNDS, FILE_GROUP_BOUNDS } from '../pages/one-file.ts';
import { askViews } from '../ui/server/answer-view.ts';

export function defaultReportFile(project: string, run: string): string {
  return join(project, STATE_FOLDER, 'reports', `${run}.html`);
}

/** Writes the report whole or not at all: the pages of `temper ui` with the answers of one run. */
export async function writeReport(store: Store, run: string, file: string): Promise<void> {
  if ((await requireRun(store, run)).state === null)
    throw badConfig(`run ${run} has no results yet; wait for its first evaluation`);
  const views: ViewContext = {
    store,
    index: openPageIndex(store),
    readVocabulary: () => Promise.resolve(null),
    now: Date.now,
    groupBounds: FILE_GROUP_BOUNDS,
  };
  const ask = askViews(views);
  const answers = new AnswerFile();
  const leftOut = await exportRun(run, ask, answers, FILE_BOUNDS);
  const { row } = (await ask(`runs/${run}`)) as RunView;
  await answers.add('runs', [row]);
  await answers.add('info', exportInfo(store.uri, leftOut));
  await writeWhole('--out', file, await answers.render(run, `/runs/${run}`), 'replace');
}
