import { RUN_ARGUMENT } from '../../operations/flags.ts';
import { defineCommand } from '../command-line/command.ts';

export const watchCommand = defineCommand({
  name: 'watch',
  summary: 'watch a run live',
  details: [
    'Follows the run until it ends. Needs no server; if one answers, you see what the run waits for. Ctrl-C stops watching.',
  ],
  arguments: { run: RUN_ARGUMENT },
  flags: {},
  async run(context): Promise<number> {
    const { watchRun } = await import('./watch-run.ts');
    return watchRun(context, context.args.run);
  },
});
