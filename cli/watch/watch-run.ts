import { requireRun } from '../../store/records/run-reader.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { WorkFailed, EXIT } from '../command-line/errors.ts';
import { isFinal, readProgress } from './follow-run.ts';
import { openProjectStore } from '../../workers/project-store.ts';
import { resultLines } from './result.ts';
import { showRun } from './show-run.ts';
import { createViewer } from './viewer.ts';

export async function watchRun(environment: CommandEnvironment, run: string): Promise<number> {
  const { project, env, output, signal } = environment;
  const store = await openProjectStore(project, env);
  const found = await requireRun(store, run);
  const before = { state: null, steps: [] };
  const viewer = createViewer(output, { run, before, hint: 'Ctrl-C stops watching; the run continues' });
  const ended = new AbortController();
  const over = AbortSignal.any([signal, ended.signal]);
  await Promise.all([
    showRun(store, run, viewer, { signal, isOver: isFinal }).finally(() => ended.abort()),
    isFinal(found.state)
      ? null
      : import('./pending.ts').then((pending) => pending.showAnyPending(environment, { store, run }, viewer, over)),
  ]);
  viewer.close();
  const progress = await readProgress(store, run);
  const { state } = progress;
  if (isFinal(state)) for (const line of resultLines(progress)) output.line(line);
  if (state?.state === 'failed')
    throw new WorkFailed(`the run ${run} failed: ${state.failure ?? 'no reason was recorded'}`);
  return EXIT.ok;
}
