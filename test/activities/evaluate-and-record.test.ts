import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { EvalResult, type RunState, type StepSummary } from '../../core/contract.ts';
import { evalRolloutsKey, stepJournalPrefix } from '../../store/layout.ts';
import { readEval, readEvalRollouts, readState, readSteps } from '../../store/run-reader.ts';
import { call, evaluateInput, openWorld, readBytes, rolloutInput, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

test('an evaluation plays each held-out scenario once', async () => {
  const input = await evaluateInput(world.store);
  const result = await call(world.activities.evaluate, input);
  expect(EvalResult.parse(result)).toEqual(result);
  expect(result).toMatchObject({ step: 0, attempts: 10, failed: 0 });
  const rollouts = await readEvalRollouts(world.store, input);
  expect(rollouts?.attempts.map(({ scenarioId }) => scenarioId)).toEqual(
    Array.from({ length: 10 }, (_, index) => `s${20 + index}`),
  );
  expect(rollouts?.header).not.toHaveProperty('group');
  expect(await readEval(world.store, input)).toMatchObject({ ...result });
  expect(await call(world.activities.evaluate, input)).toEqual(result);
  expect(world.engine.executed).toHaveLength(20);
});

test('an evaluation that was interrupted goes on, with the bytes of an undisturbed one', async () => {
  const other = await openWorld();
  const [input, theirs] = [await evaluateInput(world.store), await evaluateInput(other.store)];
  const rollout = { ...input.rollout, callRetryBudgetMs: 500 };
  world.engine.failWhen(() => (world.engine.executed.length >= 9 ? { status: 503 } : null));
  await expect(call(world.activities.evaluate, { ...input, rollout })).rejects.toMatchObject({ type: 'EngineFailed' });
  world.engine.failWhen(() => null);
  const results = [await call(world.activities.evaluate, input), await call(other.activities.evaluate, theirs)];
  expect(results[0]).toEqual(results[1]);
  expect(world.engine.executed).toHaveLength(20);
  expect(readBytes(world, evalRolloutsKey(input))).toBe(readBytes(other, evalRolloutsKey(theirs)));
  await other.close();
});

test('an evaluation from other inputs is a StepConflict', async () => {
  const input = await evaluateInput(world.store);
  await call(world.activities.evaluate, input);
  const other = { ...input, inputsSha256: 'd'.repeat(64) };
  await expect(call(world.activities.evaluate, other)).rejects.toMatchObject({ type: 'StepConflict' });
});

function summary(step: number, reward: number): StepSummary {
  const counts = { groups: 1, replacedGroups: 0, failedAttempts: 0, attempts: 6, sampledTokens: 24 };
  return {
    step,
    reward,
    metrics: {},
    train: {},
    learningRate: 1,
    ...counts,
    seconds: {},
    adapterSha256: 'a'.repeat(64),
  };
}

function state(step: number, name: RunState['state'] = 'running'): RunState {
  return {
    run: 'demo',
    agent: 'guess',
    baseModel: 'pocket',
    branch: 0,
    state: name,
    step,
    steps: 9,
    phase: 'rollout',
    waitingFor: null,
    reward: null,
    evalBefore: null,
    evalAfter: null,
    evals: [],
    wallSeconds: 1,
    adapterSha256: null,
    failure: null,
    notes: [],
  };
}

test('the record keeps one line for each step, the newest word on it', async () => {
  const { record } = world.activities;
  await call(record, { state: state(1), summaries: [summary(1, 0.1)] });
  await call(record, { state: state(3), summaries: [summary(2, 0.2), summary(3, 0.3)] });
  await call(record, { state: state(3), summaries: [summary(2, 0.25)] });
  expect((await readSteps(world.store, 'demo')).map(({ step, reward }) => [step, reward])).toEqual([
    [1, 0.1],
    [2, 0.25],
    [3, 0.3],
  ]);
  expect(await readState(world.store, 'demo')).toEqual(state(3));
});

test('journals are kept until two steps after the commit, and dropped when the run is complete', async () => {
  const { rollout, evaluate, record } = world.activities;
  await call(evaluate, await evaluateInput(world.store));
  for (const step of [1, 2, 3]) await call(rollout, await rolloutInput(world.store, { step }));
  const kept = (): number[] =>
    [0, 1, 2, 3].filter((step) => existsSync(join(world.root, stepJournalPrefix({ run: 'demo', branch: 0, step }))));
  expect(kept()).toEqual([0, 1, 2, 3]);
  await call(record, { state: state(2), summaries: [summary(1, 0), summary(2, 0)] });
  expect(kept()).toEqual([1, 2, 3]);
  await call(record, { state: state(3), summaries: [summary(3, 0)] });
  expect(kept()).toEqual([2, 3]);
  await call(record, { state: state(3, 'completed'), summaries: [] });
  expect(kept()).toEqual([]);
});
