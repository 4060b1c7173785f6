/** Commands that tell a running workflow one thing. */
import { SETTINGS } from '../../core/settings.ts';
import { defineCommand, REASON_FLAG, RUN_ARGUMENT } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const pauseCommand = defineCommand({
  name: 'pause',
  summary: 'pause a run after its current step',
  details: [
    'The current step finishes, and so does the evaluation due after it. temper stop and temper cancel work on a paused run.',
  ],
  arguments: { run: RUN_ARGUMENT },
  flags: { reason: REASON_FLAG },
  async run(context): Promise<number> {
    const { pauseRun } = await import('./tell-run.ts');
    context.output.line(await pauseRun(context, context.args.run, context.flags.reason));
    return EXIT.ok;
  },
});

export const resumeCommand = defineCommand({
  name: 'resume',
  summary: 'continue a paused run',
  arguments: { run: RUN_ARGUMENT },
  flags: {},
  async run(context): Promise<number> {
    const { resumeRun } = await import('./tell-run.ts');
    context.output.line(await resumeRun(context, context.args.run));
    return EXIT.ok;
  },
});

export const stopCommand = defineCommand({
  name: 'stop',
  summary: 'end a run after its current step, and keep the result',
  arguments: { run: RUN_ARGUMENT },
  flags: { reason: REASON_FLAG },
  async run(context): Promise<number> {
    const { stopRun } = await import('./tell-run.ts');
    context.output.line(await stopRun(context, context.args.run, context.flags.reason));
    return EXIT.ok;
  },
});

export const cancelCommand = defineCommand({
  name: 'cancel',
  summary: 'end a run immediately; committed steps stay',
  details: ['The current step is discarded. To finish it first, use temper stop.'],
  arguments: { run: RUN_ARGUMENT },
  flags: {},
  async run(context): Promise<number> {
    const { steerRun } = await import('./steer-run.ts');
    const { run } = context.args;
    await steerRun(context, run, (handle) => handle.cancel());
    context.output.line(`${run} is being cancelled; its committed steps stay in the store`);
    return EXIT.ok;
  },
});

export const setCommand = defineCommand({
  name: 'set',
  summary: 'change settings of a running run, starting with its next step',
  details: [
    `KEY is one of ${SETTINGS.slice(0, 6).join(', ')},`,
    `${SETTINGS.slice(6).join(', ')}, or the name of its flag.`,
    'Raise max-cost-usd or max-hours to continue a run that paused because it reached that budget.',
    'A setting holds until you set it again, also across a rollback. The current step finishes as planned.',
  ],
  examples: ['temper set demo learningRate=1e-5', 'temper set demo steps=300 evalEvery=50 --reason "it still learns"'],
  arguments: { run: RUN_ARGUMENT, settings: { placeholder: 'KEY=VALUE', repeats: true } },
  flags: { reason: REASON_FLAG },
  async run(context): Promise<number> {
    const { setRun } = await import('./tell-run.ts');
    const { run, settings } = context.args;
    for (const line of await setRun(context, run, settings, context.flags.reason)) context.output.line(line);
    return EXIT.ok;
  },
});

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
  async run(context): Promise<number> {
    const { parseSettings } = await import('./parse-settings.ts');
    const { describeRollback, rollBackRun } = await import('./roll-back-run.ts');
    const { openProjectStore } = await import('../../workers/config/project-store.ts');
    const { run } = context.args;
    const { step, set, reason } = context.flags;
    const settings = set.length === 0 ? null : parseSettings(set, { prefix: '--set ', help: 'temper rollback --help' });
    const store = await openProjectStore(context.project, context.env);
    context.output.line(describeRollback(run, await rollBackRun(store, context, { run, step, settings, reason })));
    return EXIT.ok;
  },
});
