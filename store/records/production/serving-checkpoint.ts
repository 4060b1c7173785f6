/** The checkpoint that serves a run's users: the promoted one, or else the one that answered last. */
import type { Checkpoint } from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { parsePolicyName, type Policy } from '../../../core/names/policy-name.ts';
import type { Store } from '../../store.ts';
import { findCheckpoint } from '../runs/find-checkpoint.ts';
import { findPromoted } from '../runs/promotions.ts';
import { listChunks, readChunk } from './recordings.ts';

export async function findServing(store: Store, run: string): Promise<Checkpoint> {
  const promoted = await findPromoted(store, run);
  if (promoted !== null) return promoted.checkpoint;
  const policy = await findLastAnswering(store, run);
  if (policy !== null) return findCheckpoint(store, policy);
  throw badConfig(
    `no conversation of ${run} was recorded in ${store.uri}; serve it with temper serve ${run} --record, or name another run`,
  );
}

/** Null if no answer was recorded. */
export async function findLastAnswering(store: Store, run: string): Promise<Policy | null> {
  for (const chunk of (await listChunks(store, run)).toReversed()) {
    const policy = parsePolicyName((await readChunk(store, run, chunk)).at(-1)?.policy ?? '');
    if (policy !== null) return policy;
  }
  return null;
}
