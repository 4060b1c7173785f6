import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { parseSettings } from '../set/settings.ts';
import type { rollbackCommand } from './command.ts';
import { rollBackRun } from './rollback-run.ts';

export async function rollback(context: CommandContext<typeof rollbackCommand>): Promise<number> {
  const { project, env, output } = context;
  const { run } = context.args;
  const { step, set, reason } = context.flags;
  const settings = set.length === 0 ? null : parseSettings(set, { prefix: '--set ', help: 'temper rollback --help' });
  const store = await openProjectStore(project, env);
  const { kept, undone, isAgain, first } = await rollBackRun(store, context, { run, step, settings, reason });
  const told = first
    ? `${run} goes back from step ${undone} to step ${kept}`
    : `${run} is already going back to step ${kept}`;
  const again = isAgain ? '; if no worker is running, start temper train or temper dev --agent FILE' : '';
  output.line(`${told}; see temper show ${run} for its branch${again}`);
  return EXIT.ok;
}
