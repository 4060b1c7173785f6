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

export const resumeCommand = defineCommand({
  name: 'resume',
  summary: 'continue a paused run',
  arguments: { run: RUN_ARGUMENT },
  flags: {},
});

export const stopCommand = defineCommand({
  name: 'stop',
  summary: 'end a run after its current step, and keep the result',
  arguments: { run: RUN_ARGUMENT },
  flags: { reason: REASON_FLAG },
});

export const cancelCommand = defineCommand({
  name: 'cancel',
  summary: 'end a run immediately; committed steps stay',
  details: ['The current step is discarded. To finish it first, use temper stop.'],
  arguments: { run: RUN_ARGUMENT },
  flags: {},
});
