import { TemperError } from '../../core/failures.ts';
import { gatherTrajectoryGroups, type GatherOptions } from './gather.ts';
import type { TrajectoryGroup } from './trajectory-group.ts';

export interface BatchOptions extends Omit<GatherOptions, 'maxExceptions'> {
  batchSize: number;
  /** As `maxExceptions`, for each batch. */
  maxBatchExceptions?: number;
  /** `await model.getStep()` goes on where a script was ended. */
  skipBatches?: number;
}

/**
 * Groups in batches of the order given, one gathered after the other: a batch that began before the one before it was
 * trained would be sampled by another policy than the one that it trains.
 */
export async function* trajectoryGroupBatches(
  groups: Iterable<TrajectoryGroup>,
  { batchSize, maxBatchExceptions = 0, skipBatches = 0, ...options }: BatchOptions,
): AsyncGenerator<TrajectoryGroup[]> {
  if (!Number.isSafeInteger(batchSize) || batchSize < 1)
    throw new TemperError('BadConfig', `batchSize must be a whole number of at least 1, got ${batchSize}; pass 8`);
  const all = [...groups];
  for (let start = batchSize * skipBatches; start < all.length; start += batchSize) {
    const batch = all.slice(start, start + batchSize);
    yield await gatherTrajectoryGroups(batch, { ...options, maxExceptions: maxBatchExceptions });
  }
}
