import { checkCount, checkOptions } from '../options/check-options.ts';
import { gatherTrajectoryGroups, type GatherOptions } from './gather.ts';
import type { TrajectoryGroup } from './trajectory-group.ts';

export interface BatchOptions extends Omit<GatherOptions, 'maxExceptions'> {
  batchSize: number;
  /** `maxExceptions` of each batch. */
  maxBatchExceptions?: number;
  /** Pass `await model.getStep()` to continue where the script stopped. */
  skipBatches?: number;
}

/**
 * Groups in batches of the order given, one gathered after the other: a batch that began before the one before it was
 * trained would be sampled by another policy than the one that it trains.
 */
export function trajectoryGroupBatches(
  groups: Iterable<TrajectoryGroup>,
  options: BatchOptions,
): AsyncGenerator<TrajectoryGroup[]> {
  checkOptions('trajectoryGroupBatches', options);
  checkCount('batchSize', options.batchSize, { least: 1, example: 8 });
  checkCount('skipBatches', options.skipBatches, { least: 0, example: 0 });
  return batches([...groups], options);
}

async function* batches(
  groups: readonly TrajectoryGroup[],
  { batchSize, maxBatchExceptions = 0, skipBatches = 0, ...options }: BatchOptions,
): AsyncGenerator<TrajectoryGroup[]> {
  for (let start = batchSize * skipBatches; start < groups.length; start += batchSize) {
    const batch = groups.slice(start, start + batchSize);
    yield await gatherTrajectoryGroups(batch, { ...options, maxExceptions: maxBatchExceptions });
  }
}
