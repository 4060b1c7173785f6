import { defineCommand, RUN_ARGUMENT } from '../command-line/command.ts';

export const cancelCommand = defineCommand({
  name: 'cancel',
  summary: 'end a run immediately; committed steps stay',
  details: ['The current step is discarded. To finish it first, use temper stop.'],
  arguments: { run: RUN_ARGUMENT },
  flags: {},
});
