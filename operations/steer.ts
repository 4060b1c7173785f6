/** Operations that tell a running workflow one thing. */
import { describeChange, SETTINGS } from '../core/rules/settings.ts';
import { REASON_FLAG, RUN_ARGUMENT } from './flags.ts';
import { defineOperation } from './operation.ts';
import type { RolledBack } from './results.ts';

const work = () => import('./steer-run.ts');

/** States of a run that has not ended. */
const LIVE = ['starting', 'running', 'pausing', 'paused', 'stopping'] as const;

export const pause = defineOperation({
  name: 'pause',
  group: 'Steer',
  summary: 'pause a run after its current step',
  details: ['The current step finishes, and so does the evaluation due after it. temper stop works on a paused run.'],
  arguments: { run: RUN_ARGUMENT },
  flags: { reason: REASON_FLAG },
  effect: 'changes',
  needsServer: true,
  button: { label: 'Pause', states: ['starting', 'running', 'stopping'], isMain: true },
  says: async ({ run }, place) =>
    `${await (await work()).sayFinishing(place, run)} Then ${run} pauses until you resume it. Nothing is lost.`,
  run: async (input, place) => (await work()).pauseRun(place, input),
  lines: ({ run, first, afterStep, since }) => [
    `${run} ${first ? `pauses after step ${afterStep}` : `has been paused since ${since}`}; continue it with temper resume ${run}`,
  ],
});

export const resume = defineOperation({
  name: 'resume',
  group: 'Steer',
  summary: 'continue a paused run',
  arguments: { run: RUN_ARGUMENT },
  flags: {},
  effect: 'changes',
  needsServer: true,
  button: { label: 'Resume', states: ['pausing', 'paused'], isMain: true },
  says: async ({ run }, place) => (await work()).sayResumed(place, run),
  run: async ({ run }, place) => (await work()).resumeRun(place, run),
  lines: ({ run, first }) => [first ? `${run} continues` : `${run} is not paused`],
});

export const stop = defineOperation({
  name: 'stop',
  group: 'Steer',
  summary: 'end a run after its current step, and keep the result',
  details: ['With --now, the current step is discarded. Committed steps stay in the store.'],
  examples: ['temper stop demo --reason "it has learned"', 'temper stop demo --now'],
  arguments: { run: RUN_ARGUMENT },
  flags: {
    now: { kind: 'boolean', description: 'do not finish the current step', excludes: ['reason'] },
    reason: REASON_FLAG,
  },
  effect: 'changes',
  needsServer: true,
  button: { label: 'Stop', states: LIVE, isMain: true, isDangerous: true },
  says: async ({ run, now }, place) => {
    const { requireLive, sayFinishing } = await work();
    await requireLive(place, run);
    const ends = now
      ? `${run} discards the step in progress and ends now; its committed steps stay in the store.`
      : `${await sayFinishing(place, run)} Then ${run} ends and keeps its result.`;
    return `${ends} You can continue it later with a rollback, or fork it.`;
  },
  run: async (input, place) => (await work()).stopRun(place, input),
  lines: ({ run, first, afterStep }) => [
    afterStep === null
      ? `${run} is being cancelled; its committed steps stay in the store`
      : `${run} ${first ? 'stops' : 'is already stopping'} after step ${afterStep}`,
  ],
});

export const set = defineOperation({
  name: 'set',
  group: 'Steer',
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
  effect: 'changes',
  needsServer: true,
  button: { label: 'Change settings', states: LIVE },
  says: async (input, place) => (await work()).saySet(place, input),
  run: async (input, place) => (await work()).setRun(place, input),
  lines: ({ run, changes }, { settings }) =>
    changes.length === 0
      ? [`${run} has ${settings.join(' ')} already`]
      : changes.map((change) => `${run}: ${describeChange(change)}`),
});

export const rollback = defineOperation({
  name: 'rollback',
  group: 'Steer',
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
  effect: 'changes',
  needsServer: true,
  button: { label: 'Roll back', states: LIVE, isDangerous: true },
  says: async (input, place) => (await work()).sayRollback(place, input),
  run: async (input, place) => (await import('./roll-back.ts')).rollBackRun(place, input),
  lines: ({ run, kept, undone, isAgain, first }: RolledBack) => [
    `${run} ${first ? `goes back from step ${undone} to step ${kept}` : `is already going back to step ${kept}`}; see temper show ${run} for its branch${
      isAgain ? '; if no worker is running, start temper train or temper dev --agent FILE' : ''
    }`,
  ],
});
