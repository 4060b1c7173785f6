/** Broken lines of activities: who may still write, what is done twice, and in which order it is told. */
import { breaking, type Mutant } from './mutant.ts';

export const ACTIVITIES: readonly Mutant[] = [
  ...breaking('activities/activity.ts', 'test/activities/pause-detector.test.ts', [
    ['a process that was suspended begins what others have by now', '      checkEntry(context, dependencies);\n', ''],
    [
      'a worker that is cut off goes on with what others have by now',
      ' && (contact?.silenceMs(startedAt) ?? 0) < limitMs',
      '',
    ],
  ]),
  ...breaking('activities/activity.ts', 'test/activities/rollout.test.ts', [
    [
      'a worker that shuts down cancels its activities',
      "if (!(reason instanceof CancelledFailure) || reason.message !== 'WORKER_SHUTDOWN') return reason;",
      'if (reason !== undefined) return reason;',
    ],
    ['what no retry mends is retried', 'nonRetryable: !error.retryable,', 'nonRetryable: false,'],
  ]),
  ...breaking('activities/contact.ts', 'test/activities/contact.test.ts', [
    ['a silence that has not come yet counts', 'to > since && to <= now', 'to > since'],
  ]),
  ...breaking('activities/record.ts', 'test/activities/evaluate-and-record.test.ts', [
    [
      'a worker that stood still puts an old state over a newer one',
      '    checkFresh();\n    await store.replace',
      '    await store.replace',
    ],
    [
      'a state names a step that the curve does not have',
      '    await addToCurve(store, state.run, state, [summary], checkFresh);\n    await publishPosition(store, state.run, position);\n    await writeState(state, checkFresh);\n',
      '    await writeState(state, checkFresh);\n    await addToCurve(store, state.run, state, [summary], checkFresh);\n    await publishPosition(store, state.run, position);\n',
    ],
    ['journals of the last steps are removed', 'state.step - KEPT_JOURNAL_STEPS', 'state.step'],
  ]),
  ...breaking('activities/rollout.ts', 'test/activities/rollout.test.ts', [
    [
      'of two workers that play one group, each has its own attempts',
      'if (created) return { rollouts, sha256: hashBytes(bytes) };',
      'if (bytes.length > 0) return { rollouts, sha256: hashBytes(bytes) };',
    ],
    [
      'a group that was played from other inputs is taken',
      '    checkInputs(what, rollouts.header.inputsSha256, input.inputsSha256);\n',
      '',
    ],
  ]),
  ...breaking('activities/evaluate.ts', 'test/activities/evaluate-and-record.test.ts', [
    [
      'an evaluation that is published is played again',
      '(await store.read(key)) ?? (await playEval(input, scope))',
      'await playEval(input, scope)',
    ],
  ]),
  ...breaking('activities/judge-given.ts', 'test/activities/judge-given.test.ts', [
    [
      'rewards that were given since the last look are not read',
      'if (isSame && awaited.over === undefined && (await readGiven(store, place, before.rows)).length === 0)',
      'if (isSame && awaited.over === undefined)',
    ],
  ]),
  ...breaking('activities/judge-group.ts', 'test/activities/reward-group.test.ts', [
    [
      'a group that is judged is judged again',
      '(await readVerdict(store, input)) ?? (await judgePlayed(input, played, scope))',
      'await judgePlayed(input, played, scope)',
    ],
  ]),
  ...breaking('activities/judge.ts', 'test/activities/judge.test.ts', [
    [
      'a workflow that has other results than the store is not told so',
      'hashOf(groups) === input.resultsSha256 ? null : groups',
      'null',
    ],
  ]),
  ...breaking('activities/schedule.ts', 'test/activities/schedule.test.ts', [
    ['firings that ask at once get one run', 'return firing === file.firing;', 'return firing.length > 0;'],
    ['a firing that asks again gets another run', 'if (known !== undefined) return begin(input, config, known);', ''],
  ]),
  ...breaking('activities/promote.ts', 'test/activities/production-schedule.test.ts', [
    [
      'a checkpoint is promoted over one that was promoted meanwhile',
      'findConflict(promoted, checkpoint, parent) ?? (',
      '(',
    ],
  ]),
  ...breaking('activities/track.ts', 'test/activities/track.test.ts', [
    ['what a person may mend at a target ends the delivery', '!MENDABLE.has(error.type)', 'MENDABLE.has(error.type)'],
  ]),
];
