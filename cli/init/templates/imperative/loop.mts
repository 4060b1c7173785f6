/** A training loop of one's own: `npm run train`. If it is killed, the same command continues where it was. */
import { gatherTrajectoryGroups, iterateDataset, TrainableModel, TrajectoryGroup } from 'temper-rl';
import { LocalBackend } from 'temper-rl/local';
import { products } from './products.ts';
import { rollout } from './rollout.ts';

const backend = new LocalBackend();
const model = new TrainableModel({ name: 'times-table', project: 'my-agent', baseModel: 'pocket' });
await model.register(backend);

const order = { groupsPerStep: 16, numEpochs: 8, initialStep: await model.getStep() };
for (const { items } of iterateDataset(products, order)) {
  const groups = await gatherTrajectoryGroups(
    items.map((product) => {
      const attempts = Array.from({ length: 8 }, () => () => rollout(model, product));
      return new TrajectoryGroup(attempts, { metadata: { scenarioId: product.id } });
    }),
    { model },
  );
  const { step, trained, reason, metrics } = await model.train(groups, { learningRate: 2e-3 });
  console.log(`step ${step}: ${trained ? `reward ${metrics['rewardMean']?.toFixed(3)}` : reason}`);
}
await backend.close();
