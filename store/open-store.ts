import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { TemperError } from '../core/failures.ts';
import { FileStore } from './file-store.ts';
import type { Store } from './store.ts';

const SCHEME = /^([a-z][a-z0-9+.-]+):\/\//i;

/** `file:///folder` or a folder; nothing is made or touched before the first write. */
export async function openStore(uri: string): Promise<Store> {
  const scheme = SCHEME.exec(uri)?.[1]?.toLowerCase();
  if (uri === '')
    throw new TemperError('BadConfig', 'the store must be a folder or a file:// URI, got an empty string; name one');
  if (scheme === undefined) return new FileStore(resolve(uri));
  if (scheme === 'file') return new FileStore(fileFolder(uri));
  const hint = scheme === 's3' ? 's3:// is not in this version' : `${scheme}:// is not known`;
  throw new TemperError(
    'BadConfig',
    `the store must be a folder or a file:// URI (${hint}), got ${uri}; name a folder`,
  );
}

function fileFolder(uri: string): string {
  try {
    return fileURLToPath(uri);
  } catch (cause) {
    throw new TemperError('BadConfig', `the store's URI must be like file:///folder, got ${uri}`, { cause });
  }
}
