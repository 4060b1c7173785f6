import { permutation } from '../../core/plan/deal.ts';
import { deriveSeed } from '../../core/numbers/seeds.ts';
import { anything, takes, whole } from '../options/options.ts';

export interface DatasetBatch<T> {
  items: T[];
  /** Over all epochs, from 0: what a model's `getStep()` is before the batch is trained. */
  step: number;
  epoch: number;
  epochStep: number;
}

export interface IterateDatasetOptions {
  groupsPerStep?: number;
  numEpochs?: number;
  /** The first batch; pass `await model.getStep()` to continue where the script stopped. */
  initialStep?: number;
  seed?: number;
}

const checkOptions = takes<IterateDatasetOptions>('iterateDataset', {
  groupsPerStep: whole(1, 'pass 8').optional(),
  numEpochs: whole(0, 'pass 1').optional(),
  initialStep: whole(0, 'pass 0').optional(),
  seed: anything.optional(),
});

/** Batches of a data set. Their order depends only on seed and epoch, so a restarted script gets the same ones. */
export function iterateDataset<T>(
  dataset: readonly T[],
  options: IterateDatasetOptions = {},
): Generator<DatasetBatch<T>> {
  const { groupsPerStep = 1, numEpochs = 1, initialStep = 0, seed = 1 } = checkOptions(options);
  return batches(dataset, { groupsPerStep, numEpochs, initialStep, seed });
}

function* batches<T>(
  dataset: readonly T[],
  { groupsPerStep, numEpochs, initialStep, seed }: Required<IterateDatasetOptions>,
): Generator<DatasetBatch<T>> {
  const stepsPerEpoch = Math.ceil(dataset.length / groupsPerStep);
  for (let step = initialStep; step < stepsPerEpoch * numEpochs; step++) {
    const [epoch, epochStep] = [Math.floor(step / stepsPerEpoch), step % stepsPerEpoch];
    const order = permutation(dataset.length, deriveSeed([seed, 'dataset', epoch]));
    const chosen = order.slice(epochStep * groupsPerStep, (epochStep + 1) * groupsPerStep);
    yield { items: chosen.map((index) => dataset[index]!), step, epoch, epochStep };
  }
}
