import { expect, test } from 'vitest';

import {
  gatherTrajectoryGroups,
  Trajectory,
  TrajectoryGroup,
  type Choice,
  type TrainableModel,
  type TurnReward,
} from '../../../sdk/index.ts';
import { groupTimesKey, judgedKey, rolloutsKey } from '../../../store/layout.ts';
import { JudgedSchema, readStored, TimesFileSchema } from '../../../store/records/file-schemas.ts';
import { readGroup } from '../../../store/records/runs/run-reader.ts';
import { decodeRollouts } from '../../../store/records/groups/trajectories.ts';
import { FakeWorld } from './fake-backend.ts';

const world = FakeWorld.ofEachTest();
const PLACE = { run: 'demo.one', branch: 0, step: 1, group: 0 };

async function ask(model: TrainableModel, content: string): Promise<Choice> {
  const messages = [{ role: 'user' as const, content }];
  const completion = await model.openai().chat.completions.create({ model: model.name, messages });
  return completion.choices[0]!;
}

/** Three attempts of two turns; `earned` says what turns of which attempt earn. */
async function gather(model: TrainableModel, earned: (choices: Choice[], attempt: number) => TurnReward[]) {
  const play = async ({ attempt }: { attempt: number }) => {
    const choices = [await ask(model, 'first of all'), await ask(model, 'second')];
    return new Trajectory({
      messagesAndChoices: [{ role: 'user', content: 'first of all' }, choices[0]!],
      additionalHistories: [{ messagesAndChoices: [{ role: 'user', content: 'second' }, choices[1]!], tools: null }],
      reward: attempt,
      turnRewards: earned(choices, attempt),
    });
  };
  const [group] = await gatherTrajectoryGroups([new TrajectoryGroup([play, play, play])], { model });
  return group!;
}

const first = ([choice]: Choice[], attempt: number): TurnReward[] =>
  attempt === 0 ? [{ choice: choice!, reward: 0.5 }] : [];

const verdict = () => readStored(world.store, judgedKey(PLACE), JudgedSchema);

test('what turns of a trajectory earned is kept with its calls, found again, and trained', async () => {
  const model = await world.model();
  const group = await gather(model, first);
  expect(group.trajectories.map(({ reward, totalReward }) => [reward, totalReward])).toEqual([
    [0, 0.5],
    [1, 1],
    [2, 2],
  ]);
  const { attempts } = await decodeRollouts((await world.store.read(rolloutsKey(PLACE)))!, 'rollouts');
  expect(attempts.map(({ reward }) => reward)).toEqual([0.5, 1, 2]);
  for (const { calls } of attempts) expect(new Set(calls.map(({ turn }) => turn))).toEqual(new Set([0, 1]));
  const again = await gather(await world.model(), first);
  expect(again.trajectories[0]?.turnRewards).toEqual(group.trajectories[0]?.turnRewards);
  await model.train([group]);
  const { judge, rewards, turnRewards } = (await verdict())!;
  expect([judge, rewards]).toEqual(['agent', [0.5, 1, 2]]);
  expect(turnRewards?.[0]?.toSorted()).toEqual([0, 0.5]);
  expect(turnRewards?.slice(1)).toEqual([null, null]);
});

test('people read the turns of a rewarded trajectory in the order of play, with the sidecar that tells it and without', async () => {
  const model = await world.model();
  await gather(model, first);
  const asked = async () =>
    (await readGroup(world.store, PLACE))!.rollouts.attempts.map(({ calls }) =>
      calls.map(({ request }) => request.messages[0]?.content),
    );
  const { callOrders } = (await readStored(world.store, groupTimesKey(PLACE), TimesFileSchema))!;
  for (const order of Object.values(callOrders!)) expect(order).toHaveLength(2);
  const played = Array.from({ length: 3 }, () => ['first of all', 'second']);
  expect(await asked()).toEqual(played);
  await world.store.replace(groupTimesKey(PLACE), new TextEncoder().encode('{}'));
  expect(await asked()).toEqual(played);
});

test('they may be changed between gathering and training, and the verdict says that the script did', async () => {
  const model = await world.model();
  const group = await gather(model, first);
  const [rewarded, ...others] = group.trajectories;
  const [turn] = rewarded!.turnRewards;
  const changed = rewarded!.copy({ reward: -0.5, turnRewards: [{ ...turn!, reward: 1 }] });
  await model.train([new TrajectoryGroup([changed, ...others])]);
  const { judge, rewards, turnRewards } = (await verdict())!;
  expect([judge, rewards]).toEqual(['script', [0.5, 1, 2]]);
  expect(turnRewards?.[0]?.toSorted()).toEqual([0, 1]);
});

test('turns of a group that was gathered without any cannot be rewarded later', async () => {
  const model = await world.model();
  const group = await gather(model, () => []);
  const { attempts } = await decodeRollouts((await world.store.read(rolloutsKey(PLACE)))!, 'rollouts');
  expect(JSON.stringify(attempts)).not.toMatch(/"turn"|"outcome"|turnRewards/);
  const [trajectory, ...others] = group.trajectories;
  const choice = trajectory!.messagesAndChoices[1] as Choice;
  const late = trajectory!.copy({ turnRewards: [{ choice, reward: 1 }] });
  const training = model.train([new TrajectoryGroup([late, ...others])]);
  await expect(training).rejects.toThrow(/turnRewards must be set when a trajectory is created or in afterEach/);
});

test.each([
  [
    'a choice that nobody sampled',
    (choices: Choice[]) => [{ choice: JSON.parse('{"message":{}}'), reward: choices.length }],
  ],
  ['a reward that is not finite', ([choice]: Choice[]) => [{ choice: choice!, reward: Number.NaN }]],
])('%s is refused', async (_, earned) => {
  const model = await world.model();
  await expect(gather(model, earned)).rejects.toThrow(/turnRewards must be finite numbers of at most/);
});
