import { defineCommand, REASON_FLAG, RUN_ARGUMENT } from '../command-line/command.ts';

export const stopCommand = defineCommand({
  name: 'stop',
  summary: 'end a run after its current step, and keep the result',
  arguments: { run: RUN_ARGUMENT },
  flags: { reason: REASON_FLAG },
});
