import type { Command } from '../command-line/command.ts';
import { stringFlag, stringFlags } from '../command-line/command.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';

export const rollback: Command = {
  name: 'rollback',
  summary: 'go back to a finished step and train the following steps again, on a new branch',
  usage: 'rollback RUN --step N [--set KEY=VALUE] [--reason TEXT]',
  details: [
    'A running run drops its current step; an ended run is started again. Nothing is overwritten or deleted: the steps',
    'after N stay on their branch, and the steps on the new branch use other seeds.',
  ],
  examples: ['temper rollback demo --step 40', 'temper rollback demo --step 40 --set learningRate=1e-5'],
  positionals: ['RUN'],
  options: {
    step: { type: 'string', placeholder: 'N', description: 'the last step to keep' },
    set: {
      type: 'string',
      multiple: true,
      placeholder: 'KEY=VALUE',
      description: 'also change a setting, as temper set does; repeatable',
    },
    reason: { type: 'string', placeholder: 'TEXT', description: 'recorded with the run' },
  },
  async run({ flags, positionals, project, env, output }) {
    const { parseSettings } = await import('../set/settings.ts');
    const step = parseStep(stringFlag(flags, 'step'));
    const settings = parseSettings(stringFlags(flags, 'set'), { prefix: '--set ', help: 'temper rollback --help' });
    const { rollBackRun } = await import('./rollback-run.ts');
    const { openProjectStore } = await import('../connections/project-store.ts');
    const run = positionals[0]!;
    const { kept, undone, isAgain, first } = await rollBackRun(await openProjectStore(project, env), project, env, {
      run,
      step,
      settings: Object.keys(settings).length === 0 ? null : settings,
      reason: stringFlag(flags, 'reason'),
    });
    const told = first
      ? `${run} goes back from step ${undone} to step ${kept}`
      : `${run} is already going back to step ${kept}`;
    const again = isAgain ? '; if no worker is running, start temper train or temper dev --agent FILE' : '';
    output.line(`${told}; see temper show ${run} for its branch${again}`);
    return EXIT.ok;
  },
};

function parseStep(text: string | null): number {
  if (text === null) throw new UsageError('--step is missing; pass --step N, the last step that is kept');
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new UsageError(`--step must be a whole number of at least 0, got ${JSON.stringify(text)}; pass --step N`);
}
