import type { Command } from '../command-line/command.ts';
import { stringFlag } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const stop: Command = {
  name: 'stop',
  summary: 'end a run after its current step, and keep the result',
  usage: 'stop RUN [--reason TEXT]',
  positionals: ['RUN'],
  options: { reason: { type: 'string', placeholder: 'TEXT', description: 'recorded with the run' } },
  async run({ flags, positionals, project, env, output }) {
    const { steerRun } = await import('../connections/steer.ts');
    const { stopUpdate } = await import('../../workflows/messages.ts');
    const run = positionals[0]!;
    const answer = await steerRun(project, env, run, (handle) =>
      handle.executeUpdate(stopUpdate, { args: [{ reason: stringFlag(flags, 'reason') }] }),
    );
    output.line(
      answer.first
        ? `${run} stops after step ${answer.afterStep}`
        : `${run} is already stopping after step ${answer.afterStep}`,
    );
    return EXIT.ok;
  },
};
