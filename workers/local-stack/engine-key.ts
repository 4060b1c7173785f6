/** The key that a caller shows to the engine: random, in a file that its owner alone reads, handed to children by their environment. */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { TemperError } from '../../core/failures.ts';
import type { ProjectFolders } from '../folders.ts';

/** The local engine's own key, or that of an engine elsewhere, by the name of its variable. */
export function engineKeyOf(
  spec: { readonly engineUrl: string | null; readonly engineKeyVariable: string },
  folders: ProjectFolders,
): string {
  if (spec.engineUrl === null) return localEngineKey(folders.engineKey);
  const key = process.env[spec.engineKeyVariable];
  if (key) return key;
  throw new TemperError(
    'BadConfig',
    `the engine ${spec.engineUrl} needs a key in ${spec.engineKeyVariable}, which is not set; export it or name another variable in temporal.config.ts`,
  );
}

function localEngineKey(file: string): string {
  try {
    writeFileSync(file, randomBytes(32).toString('base64url'), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const key = readFileSync(file, 'utf8').trim();
  if (key.length >= 32) return key;
  // Cut off by a full disk or a kill: made anew.
  writeFileSync(file, randomBytes(32).toString('base64url'), { mode: 0o600 });
  return readFileSync(file, 'utf8');
}
