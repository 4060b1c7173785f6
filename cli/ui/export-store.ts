/** `temper ui --export DIR`: the pages as files that open without a server, with as much of each run as the report has. */
import { existsSync, readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { formatBytes, plural } from '../../core/reports/format.ts';
import { listRuns } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { RunRow } from '../../views/api/run-views.ts';
import type { ViewContext } from '../../views/context/context.ts';
import { EXIT } from '../command-line/errors.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { readPageFiles } from '../pages/page-files.ts';
import { askViews } from './server/answer-view.ts';
import { exportRun, SITE_BOUNDS, type AskView } from '../pages/export-run.ts';
import { exportInfo } from '../pages/one-file.ts';
import { SiteWriter } from '../pages/site-writer.ts';

interface ExportContext extends Pick<CommandEnvironment, 'cwd' | 'output' | 'signal'> {
  readonly flags: { readonly run: readonly string[] };
}

const MARK = join('data', 'manifest.js');
/** The pages compare no more. */
const MOST_COMPARED = 6;

export async function exportStore(context: ExportContext, views: ViewContext, to: string): Promise<number> {
  const { cwd, output, signal } = context;
  const folder = resolve(cwd, to);
  const runs = await chooseRuns(views.store, context.flags.run);
  checkFolder(folder, to);
  const answer = askViews(views);
  const ask: AskView = (path) => {
    signal.throwIfAborted();
    return answer(path);
  };
  const writer = new SiteWriter(folder);
  await writer.begin(await readPageFiles('ui'));
  const rows = ((await ask('runs')) as RunRow[]).filter(({ run }) => runs.includes(run));
  await writer.add('runs', rows);
  const left: string[] = [];
  for (const run of runs) {
    output.errorLine(`exporting ${run}`);
    await views.index.update(run);
    const missing = await exportRun(run, ask, writer, SITE_BOUNDS);
    if (missing !== null) left.push(missing);
  }
  await addComparison(runs, ask, writer);
  await writer.add('info', exportInfo(views.store.uri, left.length === 0 ? null : left.join('; ')));
  await writer.end();
  output.line(
    `${plural(runs.length, 'run')} exported to ${relative(cwd, folder) || '.'}, ${formatBytes(writer.bytes)}`,
  );
  for (const line of left) output.line(`attempts of some steps only, ${line}`);
  output.line(`open ${join(folder, 'index.html')}`);
  return EXIT.ok;
}

async function chooseRuns(store: Store, named: readonly string[]): Promise<string[]> {
  const all = await listRuns(store);
  const unknown = named.find((run) => !all.includes(run));
  if (unknown !== undefined)
    throw badConfig(
      `--run must be a run of the store ${store.uri} (${all.join(', ') || 'it has none yet'}), got ${unknown}; name one of these`,
    );
  if (all.length === 0) throw badConfig(`the store ${store.uri} has no run yet; start one with temper train`);
  return named.length === 0 ? all : [...new Set(named)];
}

/** Files of something else are not mixed with the site's; an earlier export is replaced. */
function checkFolder(folder: string, to: string): void {
  if (!existsSync(folder) || existsSync(join(folder, MARK)) || readdirSync(folder).length === 0) return;
  throw badConfig(`--export must name a new or empty folder, or an earlier export, got ${to}; name another one`);
}

async function addComparison(runs: readonly string[], ask: AskView, writer: SiteWriter): Promise<void> {
  if (runs.length < 2 || runs.length > MOST_COMPARED) return;
  const path = `compare?runs=${runs.map(encodeURIComponent).join(',')}`;
  await writer.add(path, await ask(path));
}
