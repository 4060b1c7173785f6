/** Supervised steps of a script's own loop: what the trainer is asked for, and what a second request finds. */
import { expect, test } from 'vitest';
import { TrainInput } from '../../../core/contract/contract.ts';
import { gatherTrajectoryGroups, Trajectory, TrajectoryGroup, type Chat } from '../../../sdk/index.ts';
import { readContents } from '../../../store/records/copy/contents.ts';
import { readSteps } from '../../../store/records/runs/run-reader.ts';
import { FakeWorld } from './fake-backend.ts';

const world = FakeWorld.ofEachTest();

const chat = (question: string, answer = question.toUpperCase()): Chat => ({
  messages: [
    { role: 'user', content: question },
    { role: 'assistant', content: answer },
  ],
});

const trained = () => world.works.flatMap(({ kind, input }) => (kind === 'train' ? [input] : []));

test('all chats are trained in the order in which they were given, and the held-out ones are scored', async () => {
  const model = await world.model({ rollout: { chatTemplateKwargs: { thinking: false } } });
  const options = { learningRate: 1e-3, turns: 'last', maxExampleTokens: 99, overlong: 'refuse' } as const;
  const train = { microBatchTokens: 1234, packing: 'tree' } as const;
  const given = { ...options, ...train, optimizer: { beta1: 0.5 }, heldOut: [chat('c')] };
  const made = await model.trainSft([chat('a'), chat('b')], given);
  expect(made).toMatchObject({ step: 1, inferenceName: 'demo.one@1', trained: true, reason: null });
  const [input] = trained();
  expect(TrainInput.parse(input)).toEqual(input);
  expect(input).toMatchObject({ step: 1, groups: [], learningRate: 1e-3, train });
  expect(input!.train.optimizer.beta1).toBe(0.5);
  const { rendering, ...dealt } = input!.supervised!;
  expect(dealt).toEqual({ examples: [0, 1], heldOut: [2], scoresParent: true });
  expect(rendering).toMatchObject({ turns: 'last', maxExampleTokens: 99, overlong: 'refuse' });
  expect(rendering.chatTemplateKwargs).toEqual({ thinking: false });
  const lines = new TextDecoder()
    .decode(await world.store.getBlob(rendering.dataset))
    .trim()
    .split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
    ['a', 'b', 'c'].map((question, index) => ({ id: `chat ${index + 1}`, messages: chat(question).messages })),
  );
  await model.trainSft([chat('a')]);
  expect(trained()[1]!.supervised).toMatchObject({ examples: [0], rendering: { turns: 'all', overlong: 'mask' } });
  expect(Object.keys(trained()[1]!.supervised!)).toEqual(['rendering', 'examples']);
  const curve = await readSteps(world.store, 'demo.one');
  expect(curve.map(({ step, reward, examples }) => [step, reward, examples])).toEqual([
    [1, null, 2],
    [2, null, 1],
  ]);
});

test('a step that was trained when its script ended is found; other chats or options are a conflict', async () => {
  const [first, second] = [await world.model(), await world.model()];
  const made = await first.trainSft([chat('a')], { learningRate: 1e-3 });
  expect(await second.trainSft([chat('a')], { learningRate: 1e-3 })).toEqual(made);
  expect(trained()).toHaveLength(1);
  const [third, fourth] = [await world.model(), await world.model()];
  expect(await third.getStep()).toBe(1);
  await third.trainSft([chat('b')]);
  const other = fourth.trainSft([chat('c')]);
  await expect(other).rejects.toMatchObject({
    type: 'StepConflict',
    message: expect.stringMatching(
      /^step 2 of demo\.one is already in the store.*; train other groups or chats as the next step/,
    ),
  });
});

test('what cannot be trained is refused before anything is asked of the trainer', async () => {
  const model = await world.model();
  const refused = async (chats: unknown[], options: object = {}) =>
    model.trainSft(chats as Chat[], options).then(
      () => 'nothing',
      (error: unknown) => (error as Error).message,
    );
  expect(await refused([])).toContain('demo.one would be trained on nothing because the list of chats is empty');
  expect(await refused([chat('a'), { messages: [{ role: 'user', content: 'b' }] }])).toContain(
    'chat 2 of model.trainSft must have an assistant message, which is what is trained, got none',
  );
  expect(await refused([chat('a')], { heldOut: [chat('a')] })).toContain('model.trainSft must have different examples');
  expect(await refused([chat('a')], { turns: 'first' })).toContain('model.trainSft has an invalid option turns');
  expect(await refused([chat('a')], { microBatchTokens: 0 })).toContain('model.trainSft has an invalid option');
  expect(await refused([chat('a')], { passes: 2 })).toContain('model.trainSft has the options learningRate, turns');
  expect(trained()).toEqual([]);
});

test('groups gathered for the number of a supervised step are refused', async () => {
  const model = await world.model();
  const play = async () => new Trajectory({ messagesAndChoices: [{ role: 'user', content: 'a' }], reward: 1 });
  const groups = await gatherTrajectoryGroups([new TrajectoryGroup([play, play])], { model });
  await model.trainSft([chat('a')]);
  await expect(model.train(groups, { allowEmptyStep: true })).rejects.toMatchObject({ type: 'StepConflict' });
});

test('a copy of the run has the chats', async () => {
  const model = await world.model();
  for (const question of ['a', 'b', 'a']) await model.trainSft([chat(question)]);
  const { blobs } = await readContents(world.store, 'demo.one');
  expect(blobs).toEqual(
    trained()
      .slice(0, 2)
      .map(({ supervised }) => supervised!.rendering.dataset),
  );
});
