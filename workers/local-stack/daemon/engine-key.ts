/** Keys of the local stack's servers: random, each in a file that only its owner can read. Children get the engine's by their environment. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { badConfig } from '../../../core/contract/failures.ts';
import type { EngineConfig } from '../../config/config.ts';
import type { ProjectFolders } from '../../project/folders.ts';
import { readOwnFile, writeAtomically } from '../../project/own-file.ts';

const KEY_LENGTH = 43;

/** The local engine's own key, or that of an engine elsewhere, by the name of its variable. */
export function engineKeyOf({ url, keyVariable }: EngineConfig, folders: ProjectFolders): string {
  if (url === null) return localKey(folders.engineKey);
  const key = process.env[keyVariable];
  if (key) return key;
  throw badConfig(
    `the engine ${url} needs a key in ${keyVariable}, which is not set; export it or name another variable in temporal.config.ts`,
  );
}

export function localKey(file: string): string {
  const known = readOwnFile(file)?.trim() ?? '';
  if (known.length >= KEY_LENGTH) return known;
  const key = randomBytes(32).toString('base64url');
  try {
    writeFileSync(file, key, { flag: 'wx', mode: 0o600 });
    return key;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  // Two starts at once, or a key cut off by a full disk or a kill: then it is made anew.
  const written = readOwnFile(file)?.trim() ?? '';
  if (written.length >= KEY_LENGTH) return written;
  writeAtomically(file, key);
  return key;
}
