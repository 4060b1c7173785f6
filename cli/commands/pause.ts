import type { Command } from '../command.ts';
import { stringFlag } from '../command.ts';
import { EXIT } from '../errors.ts';

export const pause: Command = {
  name: 'pause',
  summary: 'finish the step in hand, then begin none until resumed',
  usage: 'pause RUN [--reason TEXT]',
  details: [
    'The step in hand finishes, with the evaluation due after it. temper stop and temper cancel work meanwhile.',
  ],
  positionals: ['RUN'],
  options: { reason: { type: 'string', placeholder: 'TEXT', description: 'recorded with the run' } },
  async run({ flags, positionals, project, env, output }) {
    const { steerRun } = await import('../steer.ts');
    const { pauseUpdate } = await import('../../workflows/messages.ts');
    const run = positionals[0]!;
    const { first, afterStep, since } = await steerRun(project, env, run, (handle) =>
      handle.executeUpdate(pauseUpdate, { args: [{ reason: stringFlag(flags, 'reason') }] }),
    );
    const told = first ? `${run} pauses after step ${afterStep}` : `${run} is paused already, since ${since}`;
    output.line(`${told}; temper resume ${run} lets it go on`);
    return EXIT.ok;
  },
};
