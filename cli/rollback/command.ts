import { defineCommand, REASON_FLAG, RUN_ARGUMENT } from '../command-line/command.ts';

export const rollbackCommand = defineCommand({
  name: 'rollback',
  summary: 'go back to a finished step and train the following steps again, on a new branch',
  details: [
    'A running run drops its current step; an ended run is started again. Nothing is overwritten or deleted: the steps',
    'after N stay on their branch, and the steps on the new branch use other seeds.',
  ],
  examples: ['temper rollback demo --step 40', 'temper rollback demo --step 40 --set learningRate=1e-5'],
  arguments: { run: RUN_ARGUMENT },
  flags: {
    step: {
      kind: 'integer',
      minimum: 0,
      placeholder: 'N',
      description: 'the last step to keep',
      required: 'pass --step N, the last step that is kept',
    },
    set: {
      kind: 'texts',
      placeholder: 'KEY=VALUE',
      description: 'also change a setting, as temper set does; repeatable',
    },
    reason: REASON_FLAG,
  },
});
