import { show } from '../../operations/runs.ts';
import { defineCommand } from '../command-line/command.ts';
import { toCommand } from '../command-line/to-command.ts';

const shown = toCommand(show);
const { name, summary, details = [], arguments: args, flags } = shown;

export const showCommand = defineCommand({
  name,
  group: 'Look',
  summary,
  details: [...details, 'With --follow, it shows the run until it ends. Ctrl-C stops watching.'],
  arguments: args,
  flags: {
    follow: { kind: 'boolean', description: 'show the run live until it ends', excludes: ['json'] },
    ...flags,
  },
  async run(context): Promise<number> {
    if (!context.flags.follow) return shown.run(context);
    const { watchRun } = await import('../watch/watch-run.ts');
    return watchRun(context, context.args.run);
  },
});
