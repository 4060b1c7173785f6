import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { TemperError } from '../../core/failures.ts';
import { requireRun } from '../../store/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { readEpisodes } from './episodes.ts';
import { renderReport } from './page.ts';

export function defaultReportFile(project: string, run: string): string {
  return join(project, '.temper', 'reports', `${run}.html`);
}

/** Writes the report whole or not at all. */
export async function writeReport(store: Store, run: string, file: string, version: string): Promise<void> {
  const { file: recorded, state, steps } = await requireRun(store, run);
  if (state === null)
    throw new TemperError('BadConfig', `run ${run} has not recorded anything yet; wait for its first evaluation`);
  const { sets, leftOut } = await readEpisodes(store, state);
  const page = renderReport({
    state,
    config: recorded.config,
    steps,
    episodes: sets,
    leftOut,
    storeUri: store.uri,
    version,
  });
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(temporary, page);
    await rename(temporary, file);
  } catch (cause) {
    throw new TemperError(
      'StoreUnavailable',
      `cannot write the report to ${file} (${String(cause)}); choose another place with --out FILE`,
      { cause },
    );
  }
}
