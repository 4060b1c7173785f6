import { createHash } from 'node:crypto';

import type { BlobRef } from '../../core/contract.ts';
import { blobKey } from '../layout.ts';

export function hashBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Reference to these bytes in any store. */
export function blobRef(bytes: Uint8Array): BlobRef {
  const sha256 = hashBytes(bytes);
  return { key: blobKey(sha256), sha256, bytes: bytes.length };
}
