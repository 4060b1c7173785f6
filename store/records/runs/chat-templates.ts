/** Chat templates that runs bring instead of their model's own: blobs, which a run's configuration names by hash. */
import type { RunConfig } from '../../../core/contract/contract.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { hashBytes } from '../../bytes/sha256.ts';
import { blobKey } from '../../layout.ts';
import type { Store } from '../../store.ts';

/** Null if a run has the model's own. */
export async function readRunTemplate(store: Store, { rollout }: Pick<RunConfig, 'rollout'>): Promise<Buffer | null> {
  const { chatTemplateSha256: sha256 } = rollout;
  return sha256 === undefined ? null : readTemplate(store, sha256);
}

export async function readTemplate(store: Store, sha256: string): Promise<Buffer> {
  const bytes = await store.read(blobKey(sha256));
  const finding = bytes === null ? 'it is missing' : hashBytes(bytes) === sha256 ? null : 'it has other bytes';
  if (bytes !== null && finding === null) return Buffer.from(bytes);
  throw new TemperError(
    'StoreCorrupt',
    `${blobKey(sha256)} must be the chat template with this hash, but ${finding}; restore it from a copy of the store (temper checkpoints pull RUN STORE)`,
  );
}
