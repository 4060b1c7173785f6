import type { Command } from '../command-line/command.ts';
import { stringFlag } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const pause: Command = {
  name: 'pause',
  summary: 'pause a run after its current step',
  usage: 'pause RUN [--reason TEXT]',
  details: [
    'The current step finishes, and so does the evaluation due after it. temper stop and temper cancel work on a paused run.',
  ],
  positionals: ['RUN'],
  options: { reason: { type: 'string', placeholder: 'TEXT', description: 'recorded with the run' } },
  async run({ flags, positionals, project, env, output }) {
    const { steerRun } = await import('../connections/steer.ts');
    const { pauseUpdate } = await import('../../workflows/messages.ts');
    const run = positionals[0]!;
    const { first, afterStep, since } = await steerRun(project, env, run, (handle) =>
      handle.executeUpdate(pauseUpdate, { args: [{ reason: stringFlag(flags, 'reason') }] }),
    );
    const told = first ? `${run} pauses after step ${afterStep}` : `${run} has been paused since ${since}`;
    output.line(`${told}; continue it with temper resume ${run}`);
    return EXIT.ok;
  },
};
