import type { Command } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const resume: Command = {
  name: 'resume',
  summary: 'continue a paused run',
  usage: 'resume RUN',
  positionals: ['RUN'],
  options: {},
  async run({ positionals, project, env, output }) {
    const { steerRun } = await import('../connections/steer.ts');
    const { resumeUpdate } = await import('../../workflows/messages.ts');
    const run = positionals[0]!;
    const { first } = await steerRun(project, env, run, (handle) => handle.executeUpdate(resumeUpdate));
    output.line(first ? `${run} continues` : `${run} is not paused`);
    return EXIT.ok;
  },
};
