import { createHash } from 'node:crypto';

import type { BlobRef } from '../../core/contract/contract.ts';
import { TemperError } from '../../core/contract/failures.ts';
import { blobKey } from '../layout.ts';

export function hashBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Reference to these bytes in any store. */
export function blobRef(bytes: Uint8Array): BlobRef {
  const sha256 = hashBytes(bytes);
  return { key: blobKey(sha256), sha256, bytes: bytes.length };
}

/** Returns the bytes if they match the reference. `place` is for messages. */
export function verifyBlob(bytes: Uint8Array | null, ref: BlobRef, place: string): Uint8Array {
  if (bytes === null) throw corrupt(`${ref.key} is missing in ${place}`);
  const sha256 = hashBytes(bytes);
  if (bytes.length === ref.bytes && sha256 === ref.sha256) return bytes;
  const found = `${bytes.length} bytes with the hash ${sha256}`;
  throw corrupt(`${ref.key} in ${place} must have ${ref.bytes} bytes with the hash ${ref.sha256}, has ${found}`);
}

function corrupt(message: string): TemperError {
  return new TemperError(
    'StoreCorrupt',
    `${message}; restore it from a copy (temper checkpoints pull RUN STORE), or start the run again under another name`,
  );
}
