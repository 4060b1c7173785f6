/** `steps/<n>/pruned.json`: weights or optimizer state of a step were removed on purpose. Outside every hash. */
import type { BlobRef } from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { policyName } from '../../../core/names/policy-name.ts';
import { encodeJson } from '../../bytes/json.ts';
import { prunedKey, type StepPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { PrunedFileSchema, readStored } from '../file-schemas.ts';
import { policiesOf, weightsOf, type Commit, type NamedWeights } from './manifest.ts';

/** What was removed: `true` is everything, `optimizer` the optimizer states alone. */
export type Pruned = boolean | 'optimizer';

export async function readPruned(store: Store, place: StepPlace): Promise<Pruned> {
  return (await readStored(store, prunedKey(place), PrunedFileSchema))?.pruned ?? false;
}

/** Blobs that a step may lack because of its mark. */
export function blobsWithout(manifest: NamedWeights, pruned: Pruned): BlobRef[] {
  if (pruned === 'optimizer') return policiesOf(manifest).map(([, { optimizer }]) => optimizer);
  return pruned ? weightsOf(manifest) : [];
}

/** Blobs that a step must have despite its mark. */
export function blobsWith(manifest: NamedWeights, pruned: Pruned): BlobRef[] {
  if (pruned === 'optimizer') return policiesOf(manifest).map(([, { adapter }]) => adapter);
  return pruned ? [] : weightsOf(manifest);
}

/** True if a blob of a step was removed on purpose. */
export async function isPruned(store: Store, place: StepPlace, { manifest }: Commit, ref: BlobRef): Promise<boolean> {
  const gone = blobsWithout(manifest, await readPruned(store, place));
  return gone.some(({ sha256 }) => sha256 === ref.sha256) && (await store.blobBytes(ref)) === null;
}

/** Written before the first blob is removed: readers of a missing one must find the reason. `false` once all are back. */
export async function markPruned(store: Store, place: StepPlace, pruned: Pruned): Promise<void> {
  const mark = encodeJson({ schema: 1, pruned });
  const { created } = await store.publish(prunedKey(place), mark);
  if (!created) await store.replace(prunedKey(place), mark);
}

/** What of a step was removed on purpose and is gone: a pruned blob may be there, because something else has the same bytes. */
export async function readGone(store: Store, place: StepPlace, { manifest }: Commit): Promise<Pruned> {
  const pruned = await readPruned(store, place);
  const lengths = await Promise.all(blobsWithout(manifest, pruned).map((ref) => store.blobBytes(ref)));
  return lengths.includes(null) && pruned;
}

/** What is trained on, by a fork or after a rollback, needs its adapter and its optimizer state. */
export async function requireUnpruned(store: Store, place: StepPlace, commit: Commit): Promise<void> {
  const gone = await readGone(store, place, commit);
  if (gone === false) return;
  const [name, { run }] = [policyName(place), place];
  const [what, others] =
    gone === 'optimizer'
      ? [
          'optimizer state',
          `, start a new run with its adapter (temper export ${name}, then temper train --adapter FOLDER),`,
        ]
      : ['weights', ''];
  throw badConfig(
    `${name} must have its ${what} to be trained further, but pruning removed it; choose a step that temper checkpoints ${run} lists as kept${others} or bring it back from a copy: temper checkpoints pull ${run} STORE --with-pruned`,
  );
}
