import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';

import {
  gatherTrajectoryGroups,
  league,
  policy,
  TrainableModel,
  Trajectory,
  TrajectoryGroup,
  type Attempt,
  type GatherOptions,
  type RoleModel,
} from '../../../sdk/index.ts';
import { judgedKey, rolloutsKey } from '../../../store/layout.ts';
import { JudgedSchema, readStored } from '../../../store/records/file-schemas.ts';
import { readRollouts } from '../../../store/records/groups/group-files.ts';
import { readEval, readManifest, readSteps } from '../../../store/records/runs/run-reader.ts';
import { parsePolicyName } from '../../../core/names/policy-name.ts';
import { FakeWorld } from './fake-backend.ts';

const world = FakeWorld.ofEachTest();

const DUEL = { roles: { x: policy(), o: policy('o') }, competing: true };
const place = { run: 'demo.one', branch: 0, step: 1, group: 0 };

/** One turn of a role, and its trajectory. */
async function turn(role: RoleModel, { reward, question = 'your move' }: { reward: number; question?: string }) {
  const messages = [{ role: 'user' as const, content: question }];
  const { choices } = await role.openai().chat.completions.create({ model: role.name, messages });
  return new Trajectory({ messagesAndChoices: [...messages, choices[0]!], reward, metrics: { moves: 1 }, logs: ['l'] });
}

const duel =
  (model: TrainableModel): Attempt =>
  async ({ attempt }) => ({
    o: await turn(model.role('o'), { reward: 0 - attempt }),
    x: await turn(model.role('x'), { reward: attempt }),
  });

function gather(model: TrainableModel, attempt = duel(model), options: Partial<GatherOptions> = {}) {
  const group = new TrajectoryGroup([attempt, attempt, attempt], { metadata: { scenarioId: 'a' } });
  return gatherTrajectoryGroups([group], { model, ...options });
}

test('each role is answered by its own policy, and a choice is trained as a call of the role that sampled it', async () => {
  const model = await world.model(DUEL);
  expect([model.role('x').getInferenceName(), model.role('o').getInferenceName()]).toEqual([
    'demo.one@0',
    'demo.one@0:o',
  ]);
  const [group] = await gather(model);
  expect(group!.trajectories.map(({ role, reward }) => [role, reward])).toEqual(
    [0, 1, 2].flatMap((attempt) => [
      ['o', 0 - attempt],
      ['x', attempt],
    ]),
  );
  const askedOf = (name?: string) =>
    world.engine.executed.filter(({ request }) => parsePolicyName(request.model)?.policy === name);
  expect([askedOf().length, askedOf('o').length]).toEqual([3, 3]);
  const { rollouts } = (await readRollouts(world.store, rolloutsKey(place)))!;
  expect(rollouts.attempts[2]).toMatchObject({
    reward: 0,
    roleRewards: { o: -2, x: 2 },
    metrics: { 'reward/o': -2, 'reward/x': 2, 'calls/o': 1, 'calls/x': 1, 'moves/o': 1, 'moves/x': 1 },
  });
  expect(new Set(rollouts.attempts[2]!.calls.map(({ role }) => role))).toEqual(new Set(['o', 'x']));
});

test('one step trains all policies of the roles, and is found again', async () => {
  const model = await world.model(DUEL);
  const groups = await gather(model);
  const first = await model.train(groups, { learningRate: 1e-3 });
  expect(first).toMatchObject({ step: 1, trained: true });
  expect(world.works).toMatchObject([
    { kind: 'initialise', input: { policies: ['o'] } },
    { kind: 'train', input: { roles: { x: 'main', o: 'o' }, train: { baseline: 'rae' } } },
  ]);
  const again = await world.model(DUEL);
  expect(again.role('o').getInferenceName()).toBe('demo.one@1:o');
  expect(await again.train(groups, { learningRate: 1e-3 })).toEqual(first);
  const manifest = (await readManifest(world.store, { ...place }))!;
  expect(Object.keys(manifest.policies ?? {})).toEqual(['o']);
  expect((await readSteps(world.store, 'demo.one'))[0]?.metrics).toMatchObject({ 'reward/x': 1, 'reward/o': -1 });
});

test('a restarted script finds what its roles were answered, and the gathered group as it was', async () => {
  const model = await world.model(DUEL);
  const answered: number[] = [];
  const fails: Attempt = async (context) => {
    await duel(model)(context);
    answered.push(context.attempt);
    // Until then nobody has failed: a failure ends the others in the middle of their calls.
    while (answered.length < 3) await sleep(5);
    throw new Error('mend me');
  };
  await expect(gather(model, fails)).rejects.toThrow('mend me');
  const later = await world.model(DUEL);
  const [before] = await gather(later, duel(later));
  expect(world.engine.executed).toHaveLength(6);
  const [after] = await gather(await world.model(DUEL), fails);
  expect(after!.trajectories).toEqual(before!.trajectories);
});

test('a choice of another role is context, and is trained in the trajectory of the role that sampled it', async () => {
  const model = await world.model(DUEL);
  const shared: Attempt = async ({ attempt }) => {
    const x = await turn(model.role('x'), { reward: attempt });
    const o = await turn(model.role('o'), { reward: 0 - attempt });
    return { x: x.copy({ messagesAndChoices: [...x.messagesAndChoices, o.messagesAndChoices[1]!] }), o };
  };
  const [group] = await gather(model, shared);
  const { rollouts } = (await readRollouts(world.store, rolloutsKey(place)))!;
  const { calls, trajectory } = rollouts.attempts[0]!;
  expect(calls).toHaveLength(2);
  const [, own, other] = trajectory!.additionalHistories[0]!.messages;
  expect(own).toEqual({ call: calls.findIndex(({ role }) => role === 'x') });
  expect(other).toMatchObject({ role: 'assistant' });
  expect(group!.trajectories[1]!.messages()).toHaveLength(3);
});

test('rewards of roles may be changed, and one role taken out of an attempt', async () => {
  const model = await world.model(DUEL);
  const [group] = await gather(model, duel(model), {
    afterEach: ({ trajectories }) => new TrajectoryGroup(trajectories.slice(1).toReversed()),
  });
  expect(group!.trajectories[0]).toMatchObject({ role: 'x', reward: 0, metrics: { moves: 1 }, logs: ['l'] });
  const judged = group!.trajectories.slice(1).map((each) => each.copy({ reward: each.reward * 10, explanation: 'b' }));
  await model.train([new TrajectoryGroup(judged)]);
  expect(await readStored(world.store, judgedKey(place), JudgedSchema)).toMatchObject({
    judge: 'script',
    rewards: [null, 0, 0],
    roleRewards: [null, { o: -10, x: 10 }, { o: -20, x: 20 }],
    explanations: [null, 'o: b\nx: b', 'o: b\nx: b'],
  });
  expect((await readSteps(world.store, 'demo.one'))[0]?.metrics).toMatchObject({ 'reward/x': 15, 'moves/x': 1 });
});

test('a role that did not play has no reward, and an evaluation shows each role', async () => {
  const model = await world.model(DUEL);
  const alone: Attempt = async ({ attempt }) => ({ x: await turn(model.role('x'), { reward: attempt }), o: null });
  await model.log(await gather(model, alone, { split: 'val' }));
  const { reward, metrics } = (await readEval(world.store, { run: 'demo.one', branch: 0, step: 0 }))!;
  expect([reward, metrics['reward/x'], metrics['calls/o'], metrics['reward/o']]).toEqual([1, 1, 0, undefined]);
});

test.each([
  [
    'one trajectory',
    (x: Trajectory) => x,
    /a trajectory for each role of the model, got one Trajectory; return \{ x: new/,
  ],
  ['a role too few', (x: Trajectory) => ({ x }), /each of the roles x, o, got none for o/],
  ['a role too many', (x: Trajectory) => ({ x, o: null, y: x }), /each of the roles x, o, got y/],
  ['no role that played', () => ({ x: null, o: null }), /a trajectory for a role, got null for all/],
  ['a number', (x: Trajectory) => ({ x, o: 1 as never }), /must return a Trajectory, got 1/],
])('an attempt that returns %s has failed', async (_, returned, message) => {
  const model = await world.model(DUEL);
  const attempt: Attempt = async () => returned(await turn(model.role('x'), { reward: 1 }));
  await expect(gather(model, attempt)).rejects.toThrow(message);
});

test('turn rewards, and calls of the model itself, are refused where a model has roles', async () => {
  const model = await world.model(DUEL);
  const rewardsTurns: Attempt = async () => {
    const x = await turn(model.role('x'), { reward: 1 });
    const choice = x.messagesAndChoices[1] as never;
    return { x: x.copy({ turnRewards: [{ choice, reward: 1 }] }), o: null };
  };
  await expect(gather(model, rewardsTurns)).rejects.toThrow(/turnRewards have no effect .* got some for the role x/);
  const plain: Attempt = async () => {
    await model.openai().chat.completions.create({ model: model.name, messages: [{ role: 'user', content: 'a' }] });
    return { x: null, o: null };
  };
  await expect(gather(model, plain)).rejects.toThrow(/must call one of its roles \(x, o\).*model\.role\('x'\)\.openai/);
});

test.each([
  [{ competing: true }, /competing of the model one has no effect without roles/],
  [{ roles: { x: policy('a') } }, /one role of the model one must be policy\(\)/],
  [{ roles: { X: policy() } }, /a role of the model one must be named by lower case letters/],
  [
    { roles: { x: policy(), past: league({ every: 1, keep: 1 }) as never } },
    /role past .* must be policy\(\).*new Model/,
  ],
])('a model with %j is refused', (options, message) => {
  expect(() => new TrainableModel({ name: 'one', project: 'demo', baseModel: 'pocket', ...options })).toThrow(message);
});

test('roles are refused with all weights, with a mean over both sides of a shared policy, and in supervised steps', async () => {
  await expect(world.model({ ...DUEL, lora: null })).rejects.toThrow(
    /share the policy main if all weights are trained/,
  );
  const shared = await world.model({ name: 'shared', roles: { x: policy(), o: policy() }, competing: true });
  await expect(shared.train(await gather(shared), { baseline: 'group' })).rejects.toThrow(/baseline must be rae/);
  const model = await world.model(DUEL);
  const chat = { messages: [{ role: 'user' as const, content: 'a' }] };
  await expect(model.trainSft([chat])).rejects.toThrow(/trains the policy main alone, and the roles .* train o too/);
  expect(() => model.role('z')).toThrow(/must have the role "z".*call one of x, o/);
  await expect(world.model({ roles: { x: policy() } })).rejects.toThrow(/exists with another configuration/);
});

test('another model plays a role through the journal', async () => {
  const model = await world.model();
  const other = await world.model({ ...DUEL, name: 'two' });
  const attempt: Attempt = async ({ attempt: reward }) => turn(other.role('o'), { reward });
  await gather(model, attempt);
  await gather(await world.model(), attempt);
  expect(world.engine.executed.map(({ request }) => request.model)).toEqual(Array(3).fill('demo.two@0:o'));
});
