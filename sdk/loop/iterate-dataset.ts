import { TemperError } from '../../core/failures.ts';
import { permutation } from '../../core/plan-deal.ts';
import { deriveSeed } from '../../core/seeds.ts';

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
  /** The first batch; `await model.getStep()` goes on where a script was ended. */
  initialStep?: number;
  seed?: number;
}

/** Batches of a data set in an order that depends on the seed and the epoch alone: whoever begins later gets the same ones. */
export function* iterateDataset<T>(
  dataset: readonly T[],
  options: IterateDatasetOptions = {},
): Generator<DatasetBatch<T>> {
  const { groupsPerStep = 1, numEpochs = 1, initialStep = 0, seed = 1 } = options;
  for (const [name, value, least] of [
    ['groupsPerStep', groupsPerStep, 1],
    ['numEpochs', numEpochs, 0],
    ['initialStep', initialStep, 0],
  ] as const)
    if (!Number.isSafeInteger(value) || value < least) throw wrong(name, value, least);
  const stepsPerEpoch = Math.ceil(dataset.length / groupsPerStep);
  for (let step = initialStep; step < stepsPerEpoch * numEpochs; step++) {
    const [epoch, epochStep] = [Math.floor(step / stepsPerEpoch), step % stepsPerEpoch];
    const order = permutation(dataset.length, deriveSeed([seed, 'dataset', epoch]));
    const chosen = order.slice(epochStep * groupsPerStep, (epochStep + 1) * groupsPerStep);
    yield { items: chosen.map((index) => dataset[index]!), step, epoch, epochStep };
  }
}

function wrong(name: string, value: number, least: number): TemperError {
  return new TemperError(
    'BadConfig',
    `${name} must be a whole number of at least ${least}, got ${value}; pass another value`,
  );
}
