/** `deletions/<run>/deletion.json`: a run is being deleted. What is left of it is taken for no run, and for no new one. */
import { badConfig } from '../../../core/contract/failures.ts';
import { encodeJson } from '../../bytes/json.ts';
import { deletionKey, deletionPrefix } from '../../layout.ts';
import type { Store } from '../../store.ts';

export async function isBeingDeleted(store: Store, run: string): Promise<boolean> {
  return (await store.read(deletionKey(run))) !== null;
}

/** Before the first object of it goes. */
export async function markDeleted(store: Store, run: string): Promise<void> {
  await store.publish(deletionKey(run), encodeJson({ schema: 1 }));
}

/** Once nothing of it is left. */
export async function forgetDeletion(store: Store, run: string): Promise<void> {
  await store.removeFolder(deletionPrefix(run));
}

export async function refuseDeleted(store: Store, run: string): Promise<void> {
  if (!(await isBeingDeleted(store, run))) return;
  throw badConfig(
    `the run ${run} in the store ${store.uri} is being deleted; finish that with temper checkpoints delete ${run} --all, or choose another name`,
  );
}
