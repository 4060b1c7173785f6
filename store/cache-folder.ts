import { homedir } from 'node:os';
import { join } from 'node:path';
import { badConfig } from '../core/contract/failures.ts';

/** TEMPER_CACHE, or the platform's folder for caches. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.TEMPER_CACHE) return env.TEMPER_CACHE;
  if (process.platform === 'darwin') return join(home(), 'Library', 'Caches', 'temper');
  return join(env.XDG_CACHE_HOME || join(home(), '.cache'), 'temper');
}

/** Throws BadConfig for a user whom the system gives none: a number without a name, in an environment without HOME. */
function home(): string {
  try {
    return homedir();
  } catch (cause) {
    const rule = 'TEMPER_CACHE must name a folder for what is downloaded and built, as this user has no home folder';
    throw badConfig(`${rule}; export TEMPER_CACHE=FOLDER`, { cause });
  }
}
