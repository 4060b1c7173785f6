import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

import { startPauseDetector } from '../../activities/pause-detector.ts';
import { EvalResult, type RunState, type StepSummary } from '../../core/contract/contract.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { encodeJson, encodeJsonLines } from '../../store/bytes/json.ts';
import {
  curvePrefix,
  evalJournalPrefix,
  evalRolloutsKey,
  manifestKey,
  runKey,
  stateKey,
  stepJournalPrefix,
} from '../../store/layout.ts';
import { listCheckpoints } from '../../store/records/runs/checkpoints.ts';
import { NOT_STEERED } from '../../core/names/lineage.ts';
import { readEval, readEvalRollouts, readRun, readState, readSteps } from '../../store/records/runs/run-reader.ts';
import { fixturePosition } from '../cli/fixture-store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { say } from '../play/play.ts';
import { call, evaluateInput, type guessing, openWorld, readBytes, rolloutInput, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});

test('an evaluation plays each held-out scenario once', async () => {
  const input = await evaluateInput(world.store);
  const evaluated = await call(world.activities.evaluate, input);
  const { usage, ...result } = evaluated;
  expect(EvalResult.parse(result)).toEqual(result);
  expect(usage?.sampledTokens).toBeGreaterThan(0);
  expect(result).toMatchObject({ step: 0, attempts: 10, failed: 0 });
  const rollouts = await readEvalRollouts(world.store, input);
  expect(rollouts?.attempts.map(({ scenarioId }) => scenarioId)).toEqual(
    Array.from({ length: 10 }, (_, index) => `s${20 + index}`),
  );
  expect(rollouts?.header).not.toHaveProperty('group');
  expect(await readEval(world.store, input)).toMatchObject({ ...result });
  rmSync(join(world.root, evalJournalPrefix(input)), { recursive: true });
  expect(await call(world.activities.evaluate, input)).toEqual(evaluated);
  expect(world.engine.executed).toHaveLength(20);
});

test('an evaluation that was interrupted goes on, with the bytes of an undisturbed one', async () => {
  const other = await openWorld();
  const [input, theirs] = [await evaluateInput(world.store), await evaluateInput(other.store)];
  const rollout = { ...input.rollout, callRetryBudgetMs: 2000 };
  world.engine.failWhen(() => (world.engine.executed.length >= 9 ? { status: 503 } : null));
  await expect(call(world.activities.evaluate, { ...input, rollout })).rejects.toMatchObject({ type: 'EngineFailed' });
  world.engine.failWhen(() => null);
  const results = [await call(world.activities.evaluate, input), await call(other.activities.evaluate, theirs)];
  expect(results[0]).toEqual(results[1]);
  expect(world.engine.executed).toHaveLength(20);
  expect(readBytes(world, evalRolloutsKey(input))).toBe(readBytes(other, evalRolloutsKey(theirs)));
});

test('a class of scenarios without any success is named, of an agent that spreads them by a field', async () => {
  const scenarios = Array.from({ length: 12 }, (_, index) => ({ id: `s${index}`, desk: index < 4 ? 'keys' : 'rent' }));
  const agent = {
    spreadBy: 'desk',
    async rollout(context: Parameters<typeof guessing.rollout>[0]) {
      await say(context, context.scenario.id);
      return { reward: 1, metrics: { correct: Number(context.scenario.id.slice(1)) >= 4 } };
    },
  };
  const spread = await openWorld(agent);
  const lines = scenarios.map((scenario) => ({ id: scenario.id, scenario }));
  const blob = await spread.store.putBlob(encodeJsonLines(lines));
  const input = await evaluateInput(spread.store, { scenarios: blob, firstScenario: 0, count: 12 });
  const { lostClasses } = await call(spread.activities.evaluate, input);
  expect(lostClasses).toEqual([{ field: 'desk', value: '"keys"', attempts: 4 }]);
  expect((await readEval(spread.store, input))?.lostClasses).toEqual(lostClasses);
  const other = await openWorld({ ...agent, spreadBy: 'id' });
  const blind = await evaluateInput(other.store, {
    scenarios: await other.store.putBlob(encodeJsonLines(lines)),
    firstScenario: 0,
    count: 12,
  });
  // Each of these classes is one attempt: too few.
  expect(await call(other.activities.evaluate, blind)).not.toHaveProperty('lostClasses');
});

test('an evaluation from other inputs is a StepConflict', async () => {
  const input = await evaluateInput(world.store);
  await call(world.activities.evaluate, input);
  const other = { ...input, inputsSha256: 'd'.repeat(64) };
  await expect(call(world.activities.evaluate, other)).rejects.toMatchObject({ type: 'StepConflict' });
});

function summary(step: number, reward: number): StepSummary {
  const counts = { groups: 1, replacedGroups: 0, unused: {}, failedAttempts: 0, attempts: 6, sampledTokens: 24 };
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
    ...NOT_STEERED,
  };
}

/** Each step's checkpoint activity, told the same state. */
async function finishSteps(after: RunState, ...summaries: StepSummary[]): Promise<void> {
  for (const line of summaries)
    await call(world.activities.checkpoint, { state: after, summary: line, position: fixturePosition(after) });
}

test('the curve keeps one line for each step, the newest word on it', async () => {
  await finishSteps(state(1), summary(1, 0.1));
  await finishSteps(state(3), summary(2, 0.2), summary(3, 0.3));
  await finishSteps(state(3), summary(2, 0.25));
  expect((await readSteps(world.store, 'demo')).map(({ step, reward }) => [step, reward])).toEqual([
    [1, 0.1],
    [2, 0.25],
    [3, 0.3],
  ]);
  expect(await readState(world.store, 'demo')).toEqual(state(3));
});

test('a step is recorded at a cost that does not grow with the run', async () => {
  const files = join(world.root, curvePrefix('demo'));
  for (let step = 95; step <= 205; step++) {
    await finishSteps(state(step), summary(step, step));
  }
  expect(readdirSync(files).toSorted()).toEqual(['0.0.jsonl', '0.1.jsonl', '0.2.jsonl']);
  const writtenAt = (name: string): number => statSync(join(files, name)).ino;
  const [first, second, third] = [writtenAt('0.0.jsonl'), writtenAt('0.1.jsonl'), writtenAt('0.2.jsonl')];
  await finishSteps(state(206), summary(206, 206));
  expect([writtenAt('0.0.jsonl'), writtenAt('0.1.jsonl')]).toEqual([first, second]);
  expect(writtenAt('0.2.jsonl')).not.toBe(third);
  const steps = (await readSteps(world.store, 'demo')).map(({ step }) => step);
  expect(steps).toEqual(Array.from({ length: 112 }, (_, index) => 95 + index));
});

test('after a rollback the curve has each step once: of the old branch up to where the new one began', async () => {
  const recordStep = (branch: number, step: number) =>
    finishSteps({ ...state(step), branch }, summary(step, branch * 1000 + step));
  const curve = async () => (await readSteps(world.store, 'demo')).map(({ reward }) => reward);
  for (let step = 1; step <= 6; step++) await recordStep(0, step);
  await call(world.activities.record, { state: { ...state(3), branch: 1 } });
  expect(await curve()).toEqual([1, 2, 3]);
  for (let step = 4; step <= 7; step++) await recordStep(1, step);
  expect(await curve()).toEqual([1, 2, 3, 1004, 1005, 1006, 1007]);
  await recordStep(2, 2);
  expect(await curve()).toEqual([1, 2002]);
});

test('a run that is begun anew under its name leaves nothing of its earlier life in the curve', async () => {
  for (let step = 99; step <= 102; step++) {
    await finishSteps(state(step), summary(step, step));
  }
  for (const step of [1, 100]) await finishSteps(state(step), summary(step, -step));
  expect((await readSteps(world.store, 'demo')).map(({ reward }) => reward)).toEqual([-1, -100]);
});

test('journals are kept until two steps after the commit, and dropped when the run is complete', async () => {
  const { rollout, evaluate } = world.activities;
  await call(evaluate, await evaluateInput(world.store));
  for (const step of [1, 2, 3]) await call(rollout, await rolloutInput(world.store, { step }));
  const kept = (): number[] =>
    [0, 1, 2, 3].filter((step) => existsSync(join(world.root, stepJournalPrefix({ run: 'demo', branch: 0, step }))));
  expect(kept()).toEqual([0, 1, 2, 3]);
  await finishSteps(state(2), summary(1, 0), summary(2, 0));
  expect(kept()).toEqual([1, 2, 3]);
  await finishSteps(state(3), summary(3, 0));
  expect(kept()).toEqual([2, 3]);
  await call(world.activities.record, { state: state(3, 'completed') });
  expect(kept()).toEqual([]);
});

test.each(['read', 'replace'] as const)(
  'a process that stood still in a checkpoint, at its %s, takes nothing away that others wrote meanwhile',
  async (method) => {
    let now = 1_000_000;
    const clock = (): number => now;
    const pauses = startPauseDetector(clock);
    const store = new FileStore(world.root);
    const frozen = await openWorld({}, { store, pauses, clock });
    await finishSteps(state(1), summary(1, 1));
    const standStill = async (): Promise<void> => {
      for (const step of [2, 3]) await finishSteps(state(step), summary(step, 1));
      now += 30_000;
    };
    const [read, replace] = [store.read.bind(store), store.replace.bind(store)];
    const thenStandStill = async <T>(done: Promise<T>): Promise<T> => {
      const result = await done;
      await standStill();
      return result;
    };
    if (method === 'read') store.read = (key) => thenStandStill(read(key));
    else store.replace = (key, bytes) => thenStandStill(replace(key, bytes));
    const late = call(frozen.activities.checkpoint, {
      state: state(2),
      summary: summary(2, 1),
      position: fixturePosition(state(2)),
    });
    await expect(late).rejects.toMatchObject({ type: 'StaleAttempt', nonRetryable: false });
    expect((await readSteps(world.store, 'demo')).map(({ step }) => step)).toEqual([1, 2, 3]);
    expect((await readState(world.store, 'demo'))?.step).toBe(3);
  },
);

test('a state names no step that the curve does not have', async () => {
  const store = new FileStore(world.root);
  const replace = store.replace.bind(store);
  store.replace = (key, bytes) =>
    key === stateKey('demo') ? replace(key, bytes) : Promise.reject(new Error('the disk is full'));
  const full = await openWorld({}, { store });
  const done = call(full.activities.checkpoint, {
    state: state(1),
    summary: summary(1, 1),
    position: fixturePosition(state(1)),
  });
  await expect(done).rejects.toThrow('the disk is full');
  expect(await readState(world.store, 'demo')).toBeNull();
});

test('old weights are removed after every tenth step, unless the run keeps all or another run cannot be read', async () => {
  const runs = ['demo', 'all', 'beside'];
  for (const run of runs) await makeRun(world.store, { run, seed: runs.indexOf(run), steps: 20 });
  const { config, ...file } = (await readRun(world.store, 'all'))!.file;
  await world.store.replace(runKey('all'), encodeJson({ ...file, config: { ...config, keepAll: true } }));
  const finish = async (run: string, step: number): Promise<number> => {
    const told = { ...state(step), run, steps: 30 };
    await call(world.activities.checkpoint, {
      state: told,
      summary: summary(step, 0),
      position: fixturePosition(told),
    });
    return (await listCheckpoints(world.store, run)).filter(({ weights }) => weights === 'pruned').length;
  };
  expect([await finish('demo', 19), await finish('demo', 20), await finish('all', 20)]).toEqual([0, 10, 0]);
  // All steps but 0 and the newest ten.
  await world.store.replace(manifestKey({ run: 'demo', branch: 0, step: 3 }), new TextEncoder().encode('{'));
  expect(await finish('beside', 20)).toBe(0);
});
