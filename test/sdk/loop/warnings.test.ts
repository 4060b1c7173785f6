import { expect, test } from 'vitest';
import { TrainableModel } from '../../../sdk/index.ts';
import { FakeWorld } from './fake-backend.ts';
import { gather } from './gather-one.ts';

const world = FakeWorld.ofEachTest();

test('the script is told of steps that trained nothing, warned after two, and told at the end what to try', async () => {
  const backend = world.backend();
  const model = new TrainableModel({ name: 'one', project: 'demo', baseModel: 'pocket', seed: 1 });
  await model.register(backend);
  await model.train(await gather(model, { rewards: [0, 0, 0] }));
  expect(world.printed).toEqual([
    'demo.one: step 1 was skipped: every group had identical rewards (no learning signal); the policy is unchanged',
  ]);
  const groups = await gather(model, { rewards: [0, 0, 0] });
  await model.train(groups);
  await model.train(groups);
  expect(world.printed.slice(2)).toEqual([expect.stringContaining('demo.one: warning: 2 steps in a row were skipped')]);
  await backend.close();
  expect(world.printed.slice(3)).toEqual([
    expect.stringContaining('demo.one: hint: reward 0.000 → 0.000: no attempt ever earned anything'),
  ]);
});

test('the script is warned as a run is, where it begins, in the names of its options', async () => {
  const model = await world.model();
  const train = async (entropy: number) => {
    world.metrics = { entropy };
    await model.train(await gather(model, { question: `entropy ${entropy}` }));
  };
  for (const entropy of [1, 1, 1, 0.05, 0.05, 0.04]) await train(entropy);
  const warning =
    'demo.one: warning: entropy fell to 0.040 nats per token, from 1.000 in the first steps: attempts become the same, and new answers are no longer found; lower learningRate, raise entropyCoefficient or temperature';
  expect(world.printed).toEqual([warning]);
  await train(0.03);
  const again = await world.model();
  world.metrics = { entropy: 0.02 };
  await again.train(await gather(again));
  expect(world.printed).toEqual([warning]);
});
