/** Broken lines of workflows: what a run waits for, what it carries, and how it ends. */
import { breaking, type Mutant } from './mutant.ts';

export const WORKFLOWS: readonly Mutant[] = [
  ...breaking(
    'workflows/run-status.ts',
    'test/workflows/train-run.test.ts',
    [
      [
        'a step waits for the checkpoint before it',
        'this.#activities.checkpoint({ state, summary, position }));',
        'this.#activities.checkpoint({ state, summary, position }));\n    await this.#writer.written();',
      ],
    ],
    { title: 'a step is played while' },
  ),
  ...breaking(
    'workflows/train-run.ts',
    'test/workflows/failures.test.ts',
    [
      [
        'a failed group waits for all others before it ends the run',
        'return Promise.all(plan.map(play));',
        'return Promise.allSettled(plan.map(play)).then((all) => all.map((each) => { if (each.status === "rejected") throw each.reason; return each.value; }));',
      ],
    ],
    { title: 'a failed group ends the run' },
  ),
  ...breaking(
    'workflows/state-writer.ts',
    'test/workflows/train-run.test.ts',
    [
      [
        'checkpoints are written in any order',
        '    do await this.#written;\n    while (this.#writing);\n    const state',
        '    const state',
      ],
    ],
    { title: 'a checkpoint is written after' },
  ),
  ...breaking(
    'workflows/train-run.ts',
    'test/workflows/continue-as-new.test.ts',
    [
      [
        'a run continues as new before its records are written',
        '  do {\n    await status.recorded();\n    await condition(allHandlersFinished);\n  } while (status.isRecording);',
        '  await condition(allHandlersFinished);',
      ],
    ],
    { title: 'waits until what it has begun' },
  ),
  ...breaking(
    'workflows/run-controls.ts',
    'test/workflows/pause.test.ts',
    [
      [
        'a pause is lost when a run continues as new',
        'requested: { stop, pause, ...pending }',
        'requested: { stop, pause: null, ...pending }',
      ],
    ],
    { title: 'keeps its pause across' },
  ),
  ...breaking(
    'workflows/run-controls.ts',
    'test/workflows/stop.test.ts',
    [
      [
        'a stop is lost when a run continues as new',
        'requested: { stop, pause, ...pending }',
        'requested: { stop: false, pause, ...pending }',
      ],
    ],
    { title: 'a stop is kept across' },
  ),
  ...breaking(
    'workflows/run-controls.ts',
    'test/workflows/settings.test.ts',
    [
      [
        'settings that are not applied yet are lost when a run continues as new',
        'settings: settings.slice(this.#settingsApplied),',
        'settings: [],',
      ],
    ],
    { title: 'are in effect from the next plan on' },
  ),
  ...breaking(
    'workflows/train-run.ts',
    'test/workflows/settings.test.ts',
    [
      [
        'a run ends without what it was told during its last step',
        'return run.controls.hasPending || isUnfinished(run, position);',
        'return isUnfinished(run, position);',
      ],
    ],
    { title: 'that come with the last step' },
  ),
  ...breaking(
    'workflows/activities.ts',
    'test/workflows/failures.test.ts',
    [
      [
        'an activity that no worker knows is tried for ever',
        "nonRetryableErrorTypes: [...NON_RETRYABLE, 'NotFoundError'],",
        'nonRetryableErrorTypes: [...NON_RETRYABLE],',
      ],
    ],
    { title: 'an activity that no worker knows' },
  ),
  ...breaking(
    'workflows/activities.ts',
    'test/workflows/visibility.test.ts',
    [['a dead worker is noticed by no missing heartbeat', '  heartbeatTimeout: 10 * SECOND_MS,\n', '']],
    { title: 'every activity has a summary' },
  ),
  ...breaking(
    'workflows/activities.ts',
    'test/workflows/payloads.test.ts',
    [
      [
        'activities are handed the defaults of options',
        'return [omitDefaults(input, INPUT_DEFAULTS) as T];',
        'return [input];',
      ],
    ],
    { title: 'without a judge' },
  ),
  ...breaking(
    'workflows/run-status.ts',
    'test/workflows/stop.test.ts',
    [
      [
        'a cancelled run does not write its end',
        'await CancellationScope.nonCancellable(async () => {',
        'await CancellationScope.cancellable(async () => {',
      ],
    ],
    { title: 'a cancelled run writes its end' },
  ),
  ...breaking(
    'workflows/run-status.ts',
    'test/workflows/failures.test.ts',
    [
      [
        'a run that was never prepared takes its name',
        "its name is free for the corrected one.\n    if (this.#state.phase === 'prepare') return;\n",
        'its name is free for the corrected one.\n',
      ],
    ],
    { title: 'cannot be prepared' },
  ),
  ...breaking(
    'workflows/run-controls.ts',
    'test/workflows/rollback.test.ts',
    [['a rollback waits for the step in hand', '    this.#work?.cancel();\n', '']],
    { title: 'of a run under way' },
  ),
  ...breaking(
    'workflows/run-controls.ts',
    'test/workflows/rollback.test.ts',
    [
      [
        'a rollback that is told twice makes two branches',
        'return last.requestId === requestId || (last.step === step && this.lastKept === step) ? last : null;',
        'return null;',
      ],
    ],
    { title: 'that is told twice makes one' },
  ),
  ...breaking(
    'workflows/restore-position.ts',
    'test/workflows/rollback.test.ts',
    [
      [
        'a run that is started again forgets what was set',
        '  controls.restore(located.changes, located.amendments);\n',
        '',
      ],
    ],
    { title: 'of a run that had ended starts' },
  ),
  ...breaking(
    'workflows/endings.ts',
    'test/workflows/train-run.test.ts',
    [['a run that never learned ends well', 'if (parent.step > 0) {', 'if (parent.step >= 0) {']],
    { title: 'end a run that never learned' },
  ),
  ...breaking(
    'workflows/overlap.ts',
    'test/workflows/overlap.test.ts',
    [
      [
        'steps that overlap never continue as new',
        'if (!this.#mayBegin(position) || isHistoryLong(position.step)) return;',
        'if (!this.#mayBegin(position)) return;',
      ],
    ],
    { title: 'give the same plans, results and curve' },
  ),
  ...breaking(
    'workflows/overlap.ts',
    'test/workflows/overlap.test.ts',
    [
      [
        'a pause lets further steps begin where they overlap',
        '!isOver && !hasPending && !isPaused && !isOverBudget',
        '!isOver && !hasPending && !isOverBudget',
      ],
    ],
    { title: 'are finished before a pause' },
  ),
  ...breaking(
    'workflows/awaited-rewards.ts',
    'test/workflows/awaited-rewards.test.ts',
    [
      [
        'rewards that are given while a run looks are not looked at',
        '      controls.takeRewards();\n      const { decided, waiting } = await activities.judgeGiven(this.#planLook());\n',
        '      const { decided, waiting } = await activities.judgeGiven(this.#planLook());\n      controls.takeRewards();\n',
      ],
    ],
    { title: 'looks again' },
  ),
  ...breaking(
    'workflows/awaited-rewards.ts',
    'test/workflows/awaited-rewards.test.ts',
    [
      [
        'a stop does not wake a run that waits for rewards',
        '(controls.hasRewards || controls.requested.stop);',
        'controls.hasRewards;',
      ],
    ],
    { title: 'a stop ends the run without' },
  ),
  ...breaking(
    'workflows/track-run.ts',
    'test/workflows/track-run.test.ts',
    [
      [
        'a run that continues while its end is delivered is not delivered again',
        'if (over) answered = before;',
        'if (over) answered = asked;',
      ],
    ],
    { title: 'a run that is started again is delivered' },
  ),
  ...breaking(
    'workflows/track-run.ts',
    'test/workflows/track-run.test.ts',
    [
      [
        'targets get nothing more once their run has ended',
        'parentClosePolicy: ParentClosePolicy.ABANDON,',
        'parentClosePolicy: ParentClosePolicy.TERMINATE,',
      ],
    ],
    { title: 'each target is served' },
  ),
  ...breaking(
    'workflows/train-step.ts',
    'test/workflows/train-step.test.ts',
    [
      [
        'a step of a script’s loop is made anew instead of trained',
        "return work.kind === 'train' ? gpu.train(work.input) : gpu.initialise(work.input);",
        'return gpu.initialise(work.input);',
      ],
    ],
    { title: 'a step that is asked for again' },
  ),
  ...breaking(
    'workflows/retrain.ts',
    'test/workflows/schedules.test.ts',
    [['a firing that has its checkpoint trains again', 'if (concluded !== null) return concluded;', '']],
    { title: 'a backfill fires for each' },
  ),
];
