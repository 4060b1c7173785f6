import { expect, test } from 'vitest';
import { withPending } from '../../cli/watch/under-way.ts';
import { fixtureState } from './fixture-store.ts';

const since = '2026-11-21T09:00:00.000Z';
const none = { attempt: 1, pollers: null, lastFailure: null, nextTryAt: null, reason: null, text: '' };
const evaluating = [{ ...none, activity: 'evaluate', queue: 'rollout/x', since }];
const told = { ...fixtureState('demo', 3), waitingFor: 'make the adapter of pocket on queue gpu' };

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
