import { homedir } from 'node:os';
import { join } from 'node:path';

/** TEMPER_CACHE, or the platform's folder for caches. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.TEMPER_CACHE) return env.TEMPER_CACHE;
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches', 'temper');
  if (process.platform === 'win32')
    return join(env.LOCALAPPDATA || join(homedir(), 'AppData', 'Local'), 'temper', 'Cache');
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'temper');
}
