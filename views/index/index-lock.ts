/** One process at a time writes the index of a run. A lock that nobody renews is taken over. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCode } from '../../store/bytes/file-system.ts';

const RENEWED_MS = 2000;
const STALE_MS = 20_000;

export interface IndexLock {
  release(): Promise<void>;
}

/** Null: another process has it. */
export async function tryLock(file: string): Promise<IndexLock | null> {
  await mkdir(dirname(file), { recursive: true });
  const token = randomUUID();
  if (!(await create(file, token))) {
    if (!(await isStale(file))) return null;
    await rm(file, { force: true });
    if (!(await create(file, token))) return null;
  }
  const renew = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => undefined);
  }, RENEWED_MS);
  renew.unref();
  return {
    release: async () => {
      clearInterval(renew);
      const holder = await readFile(file, 'utf8').catch(() => null);
      if (holder === token) await rm(file, { force: true });
    },
  };
}

async function create(file: string, token: string): Promise<boolean> {
  try {
    const handle = await open(file, 'wx');
    await handle.writeFile(token);
    await handle.close();
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

async function isStale(file: string): Promise<boolean> {
  const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: 0 }));
  return Date.now() - mtimeMs > STALE_MS;
}
