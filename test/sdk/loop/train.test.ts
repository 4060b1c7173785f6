import { expect, test } from 'vitest';

import { gatherTrajectoryGroups, TrainableModel, Trajectory, TrajectoryGroup } from '../../../sdk/index.ts';
import { LocalBackend } from '../../../workers/local-backend/local-backend.ts';
import { listCheckpoints } from '../../../store/records/runs/checkpoints.ts';
import { judgedKey, skippedKey } from '../../../store/layout.ts';
import { JudgedSchema, readStored } from '../../../store/records/file-schemas.ts';
import { readEval, readState, readSteps } from '../../../store/records/runs/run-reader.ts';
import { FakeWorld } from './fake-backend.ts';
import { gather } from './gather-one.ts';

const world = FakeWorld.ofEachTest();

const trainings = () => world.works.filter(({ kind }) => kind === 'train').length;

test('a step is trained once, however often and by whomever it is asked for', async () => {
  const model = await world.model();
  const groups = await gather(model);
  const first = await model.train(groups, { learningRate: 1e-3 });
  expect(first).toMatchObject({ step: 1, inferenceName: 'demo.one@1', trained: true });
  expect(await model.train(groups, { learningRate: 1e-3 })).toEqual(first);
  const later = await world.model();
  expect(await later.getStep()).toBe(1);
  expect(await later.train(groups, { learningRate: 1e-3 })).toEqual(first);
  expect(trainings()).toBe(1);
  expect((await readSteps(world.store, 'demo.one')).map(({ step, reward }) => [step, reward])).toEqual([[1, 2 / 3]]);
  expect(await readState(world.store, 'demo.one')).toMatchObject({ step: 1, state: 'running', reward: 2 / 3 });
});

test('the same step from other inputs is a conflict that names both', async () => {
  const model = await world.model();
  const groups = await gather(model);
  await model.train(groups, { learningRate: 1e-3 });
  const again = model.train(groups, { learningRate: 1e-4 });
  await expect(again).rejects.toMatchObject({
    type: 'StepConflict',
    message: expect.stringMatching(/inputs [0-9a-f]{64}.*inputs [0-9a-f]{64}/),
  });
});

test('rewards may be changed and attempts taken out between gathering and training', async () => {
  const model = await world.model();
  const [group] = await gather(model, { rewards: [0, 1, 1, 0] });
  const judged = group!.trajectories.slice(1).map((each, index) => each.copy({ reward: index / 2 }));
  await model.train([new TrajectoryGroup(judged)]);
  const verdict = await readStored(
    world.store,
    judgedKey({ run: 'demo.one', branch: 0, step: 1, group: 0 }),
    JudgedSchema,
  );
  expect(verdict).toMatchObject({ judge: 'script', rewards: [null, 0, 0.5, 1] });
});

test('groups of another model, of another step, of an evaluation, ungathered or mixed are refused', async () => {
  const [model, other] = [await world.model(), await world.model({ name: 'two' })];
  const groups = await gather(model);
  await expect(other.train(groups)).rejects.toThrow(/sampled by demo\.two, got one of demo\.one/);
  const held = await gather(model, { split: 'val' });
  await expect(model.train(held)).rejects.toThrow(/gathered for train, got one for val/);
  const more = await gather(model, { question: 'another' });
  const mixed = new TrajectoryGroup([...groups[0]!.trajectories, ...more[0]!.trajectories]);
  await expect(model.train([mixed])).rejects.toThrow(/attempts of one gathered group/);
  await expect(model.train([...groups, ...groups])).rejects.toThrow(/given only once/);
  const own = new Trajectory({ messagesAndChoices: [], reward: 1 });
  await expect(model.train([new TrajectoryGroup([own])])).rejects.toThrow(/must come from gatherTrajectoryGroups/);
  await model.train(groups);
  const next = await gather(model);
  await expect(model.train([...groups, ...next])).rejects.toThrow(/steps 1, 2/);
  expect(trainings()).toBe(1);
});

test('a reward that became no number is refused before anything is trained', async () => {
  const model = await world.model();
  const groups = await gather(model);
  groups[0]!.trajectories[1]!.reward = Number.NaN;
  await expect(model.train(groups)).rejects.toThrow(
    "a trajectory's reward must be a finite number from -1000000 to 1000000, got NaN",
  );
  expect(trainings()).toBe(0);
});

test('nothing to train is said, with what allows it, and then the step is over without a commit', async () => {
  const model = await world.model();
  await expect(model.train([])).rejects.toThrow(
    /trained on nothing because the list of groups is empty.*allowEmptyStep/,
  );
  const groups = await gather(model, { isSampled: false });
  await expect(model.train(groups)).rejects.toThrow(
    /messages but no choices.*completion\.choices\[0\].*allowEmptyStep/,
  );
  const skipped = await model.train(groups, { allowEmptyStep: true });
  const reason = 'every group had no tokens sampled by the model';
  expect(skipped).toEqual({ step: 1, inferenceName: 'demo.one@0', trained: false, reason, metrics: {} });
  expect(await world.store.read(skippedKey({ run: 'demo.one', branch: 0, step: 1 }))).not.toBeNull();
  const later = await world.model();
  expect([await later.getStep(), later.getInferenceName()]).toEqual([1, 'demo.one@0']);
  await later.train(await gather(later));
  expect(world.works.at(-1)).toMatchObject({ input: { step: 2, parent: { step: 0 } } });
});

test('groups whose attempts are all worth the same end the step, and the policy stays', async () => {
  const model = await world.model();
  const step = await model.train(await gather(model, { rewards: [1, 1, 1] }));
  expect(step).toMatchObject({
    step: 1,
    trained: false,
    reason: 'every group had identical rewards (no learning signal)',
  });
  expect(trainings()).toBe(0);
});

test.each([
  [{ learningRate: -1 }, /learningRate/],
  [{ advantageScale: 'some' as never }, /advantageScale/],
  [{ beta: 0.1 } as never, /beta/],
  [{ loss: { name: 'ppo' as const } }, /loss\.name ppo has no effect.*leave loss\.name out/],
  [{ loss: { epsilonHigh: 0.3 } }, /loss\.epsilonHigh 0\.3 has no effect/],
  [{ minimumGroupSize: 1 }, /minimumGroupSize/],
])('the options %j are refused', async (options, message) => {
  const model = await world.model();
  await expect(model.train(await gather(model), options)).rejects.toThrow(message);
});

test('an evaluation is kept once for each step, and shown with the run', async () => {
  const model = await world.model();
  const held = await gather(model, { split: 'val', rewards: [0, 1] });
  await model.log(held);
  await model.log(held);
  expect(await readEval(world.store, { run: 'demo.one', branch: 0, step: 0 })).toMatchObject({
    attempts: 2,
    reward: 0.5,
  });
  expect((await readState(world.store, 'demo.one'))?.evalBefore).toMatchObject({ step: 0, reward: 0.5 });
  const others = await gather(model, { split: 'val', question: 'more' });
  await expect(model.log(others)).rejects.toMatchObject({ type: 'StepConflict' });
  await expect(model.log(held, 'test')).rejects.toThrow(/takes only the split val/);
  await expect(model.log(await gather(model))).rejects.toThrow(/gathered for val/);
});

test('a model is registered once; its name means one configuration', async () => {
  const model = await world.model();
  await model.register(world.backend());
  expect(world.works.filter(({ kind }) => kind === 'initialise')).toHaveLength(1);
  await world.model();
  expect(world.works).toHaveLength(1);
  await expect(world.model({ seed: 2 })).rejects.toThrow(/another configuration.*seed: 1 → 2/);
  await expect(world.model({ name: 'Big Name' })).rejects.toThrow(/lower case letters/);
});

test('a script that was killed before it wrote the line of its step writes it when it begins again', async () => {
  const model = await world.model();
  await model.train(await gather(model));
  await world.store.removeFolder('runs/demo.one/steps');
  await world.model();
  expect((await readSteps(world.store, 'demo.one')).map(({ step, reward }) => [step, reward])).toEqual([[1, 2 / 3]]);
});

test('what is not registered cannot be asked, trained or gathered for', async () => {
  const model = new TrainableModel({ name: 'one', project: 'demo', baseModel: 'pocket' });
  expect(() => model.openai()).toThrow(/await model\.register\(backend\)/);
  await expect(model.getStep()).rejects.toThrow(/not registered/);
});

test('without LoRA all weights are trained, at a learning rate of their own', async () => {
  const model = await world.model({ name: 'full', lora: null });
  expect(world.works.at(-1)).toMatchObject({ kind: 'initialise', input: { lora: null } });
  await model.train(await gather(model));
  expect(world.works.at(-1)).toMatchObject({ kind: 'train', input: { train: { lora: null }, learningRate: 5e-6 } });
});

test("a fork begins with another model's newest checkpoint up to a step, and keeps the one it began with", async () => {
  const model = await world.model();
  await model.train(await gather(model));
  await model.train(await gather(model));
  const local = new LocalBackend({ folder: world.folder });
  const fork = async (notAfterStep?: number) => {
    const forked = new TrainableModel({ name: 'fork', project: 'demo', baseModel: 'pocket', seed: 1 });
    const from = { fromModel: 'one', ...(notAfterStep === undefined ? {} : { notAfterStep }) };
    await local.forkCheckpoint(forked, from);
    await forked.register(world.backend());
    return forked;
  };
  expect(await (await fork(1)).getStep()).toBe(0);
  expect(world.works.at(-1)).toMatchObject({ kind: 'initialise', input: { parent: { run: 'demo.one', step: 1 } } });
  const before = world.works.length;
  await fork();
  expect(world.works).toHaveLength(before);
  const nobody = new TrainableModel({ name: 'x', project: 'demo', baseModel: 'pocket' });
  await expect(local.forkCheckpoint(nobody, { fromModel: 'none' })).rejects.toThrow(
    /demo\.none must have a committed step/,
  );
  await expect(local.forkCheckpoint(model, { fromModel: 'one' })).rejects.toThrow(/fork before model\.register/);
  await local.close();
});

test('without an evaluation all weights but the newest go; the best by a metric nobody measured is refused', async () => {
  const model = await world.model();
  for (let step = 1; step <= 4; step++) await model.train(await gather(model));
  await expect(model.deleteCheckpoints({ bestCheckpointMetric: 'val/winRate' })).rejects.toThrow(/winRate/);
  await expect(model.deleteCheckpoints({ bestCheckpointMetric: 'train/reward' })).rejects.toThrow(/evaluations/);
  for (const { commit } of await listCheckpoints(world.store, 'demo.one')) {
    const { adapter, optimizer } = commit.manifest;
    for (const { key } of [adapter, optimizer]) await world.store.publish(key, new Uint8Array(1));
  }
  await model.deleteCheckpoints();
  const kept = (await listCheckpoints(world.store, 'demo.one')).map(({ step, weights }) => [step, weights]);
  expect(kept).toEqual([
    [0, 'kept'],
    [1, 'pruned'],
    [2, 'pruned'],
    [3, 'kept'],
    [4, 'kept'],
  ]);
});

test('an evaluation that was begun before a step is trained is sampled by the policy that it began with', async () => {
  const model = await world.model();
  const groups = await gather(model);
  let open = (): void => undefined;
  const trained = new Promise<void>((resolve) => (open = resolve));
  const ask = async () => {
    await trained;
    const messages = [{ role: 'user' as const, content: 'late' }];
    await model.openai().chat.completions.create({ model: model.getInferenceName(), messages });
    return new Trajectory({ messagesAndChoices: messages, reward: 1 });
  };
  const measuring = gatherTrajectoryGroups([new TrajectoryGroup([ask])], { model, split: 'val' });
  await model.train(groups);
  open();
  await model.log(await measuring);
  expect(world.engine.executed.at(-1)?.request.model).toBe('demo.one@0');
  expect((await readState(world.store, 'demo.one'))?.evalBefore).toMatchObject({ step: 0, reward: 1 });
});
