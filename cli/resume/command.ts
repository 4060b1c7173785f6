import { defineCommand, RUN_ARGUMENT } from '../command-line/command.ts';

export const resumeCommand = defineCommand({
  name: 'resume',
  summary: 'continue a paused run',
  arguments: { run: RUN_ARGUMENT },
  flags: {},
});
