import { expect, onTestFinished, test, vi } from 'vitest';
import { describeWorkflowTask } from '../../operations/pending/pending-text.ts';
import { withPending } from '../../operations/pending/under-way.ts';
import { createViewer } from '../../cli/watch/viewer.ts';
import { fixtureState } from './fixture-store.ts';

const since = '2026-11-21T09:00:00.000Z';
const none = { attempt: 1, pollers: null, lastFailure: null, nextTryAt: null, reason: null, text: '' };
const evaluating = [{ ...none, activity: 'evaluate', queue: 'rollout/x', since }];
const told = { ...fixtureState('demo', 3), waitingFor: 'make checkpoint 0 of pocket on queue gpu' };

test('a run whose store was told last of its adapter is shown in the evaluation that is under way', () => {
  const state = withPending({ ...told, state: 'running', phase: 'initialise' }, evaluating);
  expect(state).toMatchObject({ phase: 'eval', waitingFor: `evaluate the policy on queue rollout/x, since ${since}` });
});

test.each([
  ['the phase that was told', 'running', 'eval', evaluating],
  ['nothing', 'running', 'initialise', []],
  ['writing its state', 'running', 'initialise', [{ ...evaluating[0]!, activity: 'record' }]],
  ['an activity that outlives it', 'completed', 'done', evaluating],
] as const)('a run with %s pending is shown as it was told', (_, state, phase, pending) => {
  const seen = { ...told, state, phase };
  expect(withPending(seen, pending)).toBe(seen);
});

/** The lines that a viewer off a terminal prints, on a clock of the test. */
function openViewer() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const lines: string[] = [];
  const screen = { isTerminal: false, columns: 80, rows: 24, stream: process.stdout, errorLine: () => undefined };
  const before = { file: null, state: null, steps: [] };
  const viewer = createViewer({ ...screen, line: (text = '') => lines.push(text) }, { run: 'demo', before, hint: '' });
  return { viewer, lines };
}

test('a queue without a worker is told once it has lasted: a worker that is starting polls soon', () => {
  const { viewer, lines } = openViewer();
  const pending = [{ ...none, activity: 'initialise', queue: 'gpu', since, reason: 'no worker polls queue gpu' }];
  viewer.pending(pending);
  vi.advanceTimersByTime(4000);
  viewer.pending(pending);
  expect(lines).toEqual([]);
  vi.advanceTimersByTime(4000);
  viewer.pending(pending);
  viewer.pending(pending);
  expect(lines).toEqual(['waiting for initialise: no worker polls queue gpu']);
});

test('an activity that fails again and again is told once, with its attempt', () => {
  const { viewer, lines } = openViewer();
  const failing = {
    ...none,
    activity: 'prepare',
    queue: 'q',
    since,
    lastFailure: 'TypeError: x',
    reason: 'last failure: x',
  };
  for (const attempt of [2, 3, 4, 5]) {
    viewer.pending([{ ...failing, attempt }]);
    vi.advanceTimersByTime(3000);
  }
  expect(lines).toEqual(['waiting for prepare, attempt 4: last failure: x']);
});

test.each([
  [0, 1, 'no worker runs workflows on queue q; start temper dev or temper worker'],
  [2, 1, 'the workers on queue q have not run it yet; they are busy or do not respond'],
  [2, 2, 'the workers on queue q fail to run it, or take too long; see their logs'],
])('a workflow task with %i pollers in attempt %i says why it waits', (pollers, attempt, reason) => {
  expect(describeWorkflowTask('q', pollers, attempt, since)).toMatchObject({ attempt, reason });
});
