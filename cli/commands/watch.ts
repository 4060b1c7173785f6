import { requireRun } from '../../store/run-reader.ts';
import type { Command } from '../command.ts';
import { CommandFailed, EXIT } from '../errors.ts';
import { isFinal, readProgress } from '../follow-run.ts';
import { openProjectStore } from '../project-store.ts';
import { resultLines } from '../result.ts';
import { showRun } from '../show-run.ts';

export const watch: Command = {
  name: 'watch',
  summary: 'watch a run live; needs no server',
  usage: 'watch RUN',
  details: ['Follows the run until it ends. Ctrl-C stops watching; the run continues.'],
  positionals: ['RUN'],
  options: {},
  async run({ positionals, project, env, output, signal }) {
    const { createViewer } = await import('../view/viewer.ts');
    const run = positionals[0]!;
    const store = await openProjectStore(project, env);
    await requireRun(store, run);
    const before = { state: null, steps: [] };
    const viewer = createViewer(output, { run, before, hint: 'Ctrl-C stops watching; the run continues' });
    await showRun(store, run, viewer, { signal, isOver: isFinal });
    viewer.close();
    const progress = await readProgress(store, run);
    const { state } = progress;
    if (isFinal(state)) for (const line of resultLines(progress)) output.line(line);
    if (state?.state === 'failed')
      throw new CommandFailed(`the run ${run} failed: ${state.failure ?? 'no reason was recorded'}`);
    return EXIT.ok;
  },
};
