import { SETTINGS } from '../../core/settings.ts';
import { defineCommand, REASON_FLAG, RUN_ARGUMENT } from '../command-line/command.ts';

export const setCommand = defineCommand({
  name: 'set',
  summary: 'change settings of a running run, starting with its next step',
  details: [
    `KEY is one of ${SETTINGS.join(', ')}, or the name of its flag.`,
    'Raise max-judge-usd to continue a run that paused because its judge reached the budget.',
    'A setting holds until you set it again, also across a rollback. The current step finishes as planned.',
  ],
  examples: ['temper set demo learningRate=1e-5', 'temper set demo steps=300 evalEvery=50 --reason "it still learns"'],
  arguments: { run: RUN_ARGUMENT, settings: { placeholder: 'KEY=VALUE', repeats: true } },
  flags: { reason: REASON_FLAG },
});
