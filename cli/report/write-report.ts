import { join } from 'node:path';
import { REVIEW } from '../../core/rules/external-rewards.ts';
import { badConfig } from '../../core/contract/failures.ts';
import { readAgreement } from '../../store/records/rewards/review-agreement.ts';
import { requireRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { readAdvisories } from '../../views/runs/stored-advisories.ts';
import { STATE_FOLDER } from '../../workers/project/folders.ts';
import { writeWhole } from '../command-line/files.ts';
import { readAttempts } from './read-attempts.ts';
import { renderReport } from './page.ts';

export function defaultReportFile(project: string, run: string): string {
  return join(project, STATE_FOLDER, 'reports', `${run}.html`);
}

/** Writes the report whole or not at all. */
export async function writeReport(store: Store, run: string, file: string, version: string): Promise<void> {
  const found = await requireRun(store, run);
  const { file: recorded, state, steps } = found;
  if (state === null) throw badConfig(`run ${run} has no results yet; wait for its first evaluation`);
  const { sets, leftOut } = await readAttempts(store, state);
  const page = await renderReport({
    state,
    config: recorded.config,
    steps,
    advisories: await readAdvisories(store, found, Date.now()),
    attemptSets: sets,
    leftOut,
    agreement: recorded.config.judge === REVIEW ? await readAgreement(store, state) : null,
    storeUri: store.uri,
    version,
  });
  await writeWhole('--out', file, page, 'replace');
}
