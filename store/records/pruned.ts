/** `steps/<n>/pruned.json`: weights and optimizer state of a step were removed on purpose. Outside every hash. */
import type { BlobRef } from '../../core/contract.ts';
import { encodeJson } from '../bytes/json.ts';
import { prunedKey, type StepPlace } from '../layout.ts';
import type { Store } from '../store.ts';
import { PrunedFileSchema, readStored } from './file-schemas.ts';

const encode = (pruned: boolean): Uint8Array => encodeJson({ schema: 1, pruned });

export async function isMarkedPruned(store: Store, place: StepPlace): Promise<boolean> {
  return (await readStored(store, prunedKey(place), PrunedFileSchema))?.pruned ?? false;
}

/** True if a blob of a step was removed on purpose. */
export async function isPruned(store: Store, place: StepPlace, ref: BlobRef): Promise<boolean> {
  return (await isMarkedPruned(store, place)) && (await store.blobBytes(ref)) === null;
}

/** Written before the first blob is removed: readers of a missing one must find the reason. */
export async function markPruned(store: Store, place: StepPlace): Promise<void> {
  const { created } = await store.publish(prunedKey(place), encode(true));
  if (!created) await store.replace(prunedKey(place), encode(true));
}

/** Once all are back. */
export async function unmarkPruned(store: Store, place: StepPlace): Promise<void> {
  if (await isMarkedPruned(store, place)) await store.replace(prunedKey(place), encode(false));
}
