/** Broken lines of workflows: what a run waits for, what it carries, and how it ends. */
import type { Mutant } from './mutant.ts';

const TESTS = 'test/workflows';
const RUN = 'workflows/train-run.ts';
const STATUS = 'workflows/run-status.ts';
const CONTROLS = 'workflows/run-controls.ts';
const OVERLAP = 'workflows/overlap.ts';

export const WORKFLOWS: readonly Mutant[] = [
  {
    name: 'a step waits for the checkpoint before it',
    file: STATUS,
    find: 'this.#activities.checkpoint({ state, summary }));',
    replace: 'this.#activities.checkpoint({ state, summary }));\n    await this.#writer.written();',
    test: `${TESTS}/train-run.test.ts`,
  },
  {
    name: 'a failed group waits for all others before it ends the run',
    file: RUN,
    find: 'return Promise.all(plan.map(play));',
    replace:
      'return Promise.allSettled(plan.map(play)).then((all) => all.map((each) => { if (each.status === "rejected") throw each.reason; return each.value; }));',
    test: `${TESTS}/failures.test.ts`,
  },
  {
    name: 'checkpoints are written in any order',
    file: 'workflows/state-writer.ts',
    find: '    do await this.#written;\n    while (this.#writing);\n    const state',
    replace: '    const state',
    test: `${TESTS}/train-run.test.ts`,
  },
  {
    name: 'a run continues as new before its records are written',
    file: RUN,
    find: '  do {\n    await status.recorded();\n    await condition(allHandlersFinished);\n  } while (status.isRecording);',
    replace: '  await condition(allHandlersFinished);',
    test: `${TESTS}/continue-as-new.test.ts`,
  },
  {
    name: 'a pause is lost when a run continues as new',
    file: CONTROLS,
    find: 'told: { stop, pause, ...pending }',
    replace: 'told: { stop, pause: null, ...pending }',
    test: `${TESTS}/pause.test.ts`,
  },
  {
    name: 'a stop is lost when a run continues as new',
    file: CONTROLS,
    find: 'told: { stop, pause, ...pending }',
    replace: 'told: { stop: false, pause, ...pending }',
    test: `${TESTS}/stop.test.ts`,
  },
  {
    name: 'settings that are not applied yet are lost when a run continues as new',
    file: CONTROLS,
    find: 'settings: settings.slice(this.#settingsApplied),',
    replace: 'settings: [],',
    test: `${TESTS}/settings.test.ts`,
  },
  {
    name: 'a run ends without what it was told during its last step',
    file: RUN,
    find: 'return run.controls.hasPending || isUnfinished(run, position);',
    replace: 'return isUnfinished(run, position);',
    test: `${TESTS}/settings.test.ts`,
  },
  {
    name: 'an activity that no worker knows is tried for ever',
    file: 'workflows/activities.ts',
    find: "nonRetryableErrorTypes: [...NON_RETRYABLE, 'NotFoundError'],",
    replace: 'nonRetryableErrorTypes: [...NON_RETRYABLE],',
    test: `${TESTS}/failures.test.ts`,
  },
  {
    name: 'a dead worker is noticed by no missing heartbeat',
    file: 'workflows/activities.ts',
    find: '  heartbeatTimeout: 10 * SECOND_MS,\n',
    replace: '',
    test: `${TESTS}/visibility.test.ts`,
  },
  {
    name: 'activities are handed the defaults of options',
    file: 'workflows/activities.ts',
    find: 'return [omitDefaults(input, INPUT_DEFAULTS) as T];',
    replace: 'return [input];',
    test: `${TESTS}/payloads.test.ts`,
  },
  {
    name: 'a cancelled run does not write its end',
    file: STATUS,
    find: 'await CancellationScope.nonCancellable(async () => {',
    replace: 'await CancellationScope.cancellable(async () => {',
    test: `${TESTS}/stop.test.ts`,
  },
  {
    name: 'a run that was never prepared takes its name',
    file: STATUS,
    find: "its name is free for the corrected one.\n    if (this.#state.phase === 'prepare') return;\n",
    replace: 'its name is free for the corrected one.\n',
    test: `${TESTS}/failures.test.ts`,
  },
  {
    name: 'a rollback waits for the step in hand',
    file: CONTROLS,
    find: '    this.#work?.cancel();\n',
    replace: '',
    test: `${TESTS}/rollback.test.ts`,
  },
  {
    name: 'a rollback that is told twice makes two branches',
    file: CONTROLS,
    find: 'return last.requestId === requestId || (last.step === step && this.lastKept === step) ? last : null;',
    replace: 'return null;',
    test: `${TESTS}/rollback.test.ts`,
  },
  {
    name: 'a run that is started again forgets what was set',
    file: 'workflows/restore-position.ts',
    find: '  controls.restore(located.changes, located.amendments);\n',
    replace: '',
    test: `${TESTS}/rollback.test.ts`,
  },
  {
    name: 'a run that never learned ends well',
    file: 'workflows/endings.ts',
    find: 'if (parent.step > 0) {',
    replace: 'if (parent.step >= 0) {',
    test: `${TESTS}/train-run.test.ts`,
  },
  {
    name: 'steps that overlap never continue as new',
    file: OVERLAP,
    find: 'if (!this.#mayBegin(position) || isHistoryLong(position.step)) return;',
    replace: 'if (!this.#mayBegin(position)) return;',
    test: `${TESTS}/overlap.test.ts`,
  },
  {
    name: 'a pause lets further steps begin where they overlap',
    file: OVERLAP,
    find: '!isOver && !hasPending && !isPaused && !isOverBudget',
    replace: '!isOver && !hasPending && !isOverBudget',
    test: `${TESTS}/overlap.test.ts`,
  },
  {
    name: 'rewards that are given while a run looks are not looked at',
    file: 'workflows/awaited-rewards.ts',
    find: '      controls.takeRewards();\n      const { decided, waiting } = await activities.judgeGiven(this.#planLook());\n',
    replace:
      '      const { decided, waiting } = await activities.judgeGiven(this.#planLook());\n      controls.takeRewards();\n',
    test: `${TESTS}/awaited-rewards.test.ts`,
  },
  {
    name: 'a stop does not wake a run that waits for rewards',
    file: 'workflows/awaited-rewards.ts',
    find: '(controls.hasRewards || controls.requested.stop);',
    replace: 'controls.hasRewards;',
    test: `${TESTS}/awaited-rewards.test.ts`,
  },
  {
    name: 'a run that goes on while its end is told is not told again',
    file: 'workflows/track-run.ts',
    find: 'if (over) answered = before;',
    replace: 'if (over) answered = asked;',
    test: `${TESTS}/track-run.test.ts`,
  },
  {
    name: 'targets are told no more once their run has ended',
    file: 'workflows/track-run.ts',
    find: 'parentClosePolicy: ParentClosePolicy.ABANDON,',
    replace: 'parentClosePolicy: ParentClosePolicy.TERMINATE,',
    test: `${TESTS}/track-run.test.ts`,
  },
  {
    name: 'the loop of a script trains a step again when it is asked twice',
    file: 'workflows/train-step.ts',
    find: "return work.kind === 'train' ? gpu.train(work.input) : gpu.initialise(work.input);",
    replace: 'return gpu.initialise(work.input as InitialiseInput);',
    test: `${TESTS}/train-step.test.ts`,
  },
  {
    name: 'a firing that has its checkpoint trains again',
    file: 'workflows/retrain.ts',
    find: 'if (concluded !== null) return concluded;',
    replace: '',
    test: `${TESTS}/schedules.test.ts`,
  },
];
