import { defineCommand, REASON_FLAG, RUN_ARGUMENT } from '../command-line/command.ts';

export const pauseCommand = defineCommand({
  name: 'pause',
  summary: 'pause a run after its current step',
  details: [
    'The current step finishes, and so does the evaluation due after it. temper stop and temper cancel work on a paused run.',
  ],
  arguments: { run: RUN_ARGUMENT },
  flags: { reason: REASON_FLAG },
});
