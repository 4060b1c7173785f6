import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { badConfig } from '../../core/contract/failures.ts';
import { FileStore } from './file-store.ts';
import { checkKey } from './keys.ts';
import type { Store } from '../store.ts';

export interface OpenStoreOptions {
  /** Folder for journals until a bucket has them; only needed to write some. */
  spoolFolder?: string;
  /** Read-only folder of another user: its links are not followed. */
  isForeign?: boolean;
}

const SCHEME = /^([a-z][a-z0-9+.-]+):\/\//i;
const BUCKET = /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i;
const KINDS = 'a folder, a file:// URI or s3://BUCKET/PREFIX';

/** `file:///folder`, a folder, or `s3://bucket/prefix`; nothing is made or touched before the first write. */
export async function openStore(uri: string, options: OpenStoreOptions = {}): Promise<Store> {
  const scheme = SCHEME.exec(uri)?.[1]?.toLowerCase();
  if (uri === '') throw badConfig(`the store must be ${KINDS}, got an empty string; name one`);
  if (scheme === undefined) return openFolder(resolve(uri), options);
  if (scheme === 'file') return openFolder(fileFolder(uri), options);
  if (scheme === 's3') {
    // The SDK is large and only loaded for buckets.
    const { openS3Store } = await import('./s3-store.ts');
    return openS3Store(bucketAddress(uri), options);
  }
  throw badConfig(`the store must be ${KINDS} (${scheme}:// is not known), got ${uri}; name one`);
}

async function openFolder(root: string, { isForeign = false }: OpenStoreOptions): Promise<Store> {
  if (!isForeign) return new FileStore(root);
  const { foreignFileSystem } = await import('./foreign-file-system.ts');
  return new FileStore(root, foreignFileSystem(root));
}

function fileFolder(uri: string): string {
  try {
    return fileURLToPath(uri);
  } catch (cause) {
    throw badConfig(`the store's URI must be like file:///folder, got ${uri}`, { cause });
  }
}

function bucketAddress(uri: string): { bucket: string; prefix: string } {
  const [bucket = '', ...names] = uri.slice('s3://'.length).replace(/\/$/, '').split('/');
  // The URI is not shown: it may have a key before the @.
  if (bucket.includes('@')) {
    const rule = "the store's URI must be like s3://bucket/prefix, without credentials";
    throw badConfig(`${rule}; put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`);
  }
  if (!BUCKET.test(bucket)) throw badConfig(`the store's URI must be like s3://bucket/prefix, got ${uri}`);
  return { bucket, prefix: names.length === 0 ? '' : checkKey(names.join('/')) };
}
