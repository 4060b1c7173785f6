import type { Command } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const cancel: Command = {
  name: 'cancel',
  summary: 'end a run immediately; committed steps stay',
  usage: 'cancel RUN',
  details: ['The current step is discarded. To finish it first, use temper stop.'],
  positionals: ['RUN'],
  options: {},
  async run({ positionals, project, env, output }) {
    const { steerRun } = await import('../connections/steer.ts');
    const run = positionals[0]!;
    await steerRun(project, env, run, (handle) => handle.cancel());
    output.line(`${run} is being cancelled; its committed steps stay in the store`);
    return EXIT.ok;
  },
};
