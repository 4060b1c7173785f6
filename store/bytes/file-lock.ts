/** Locks between processes: held by the kernel on an open file (OFD locks), so they outlive SIGSTOP and end with their holder. */
import { closeSync, constants, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { tryLock } from 'fs-native-extensions';

const POLL_MS = 200;
const OPEN = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;

/** The lock's release, or null if another process holds it. */
export function tryFileLock(file: string): (() => void) | null {
  const fd = openSync(file, OPEN, 0o600);
  try {
    if (tryLock(fd)) return () => closeSync(fd);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  return null;
}

/** Does work that two processes must not do at once; the second waits and then usually finds it done. */
export async function withFileLock<T>(
  file: string,
  work: () => Promise<T>,
  onWait: () => void,
  signal?: AbortSignal,
): Promise<T> {
  let release = tryFileLock(file);
  if (release === null) onWait();
  while (release === null) {
    await sleep(POLL_MS, undefined, signal ? { signal } : {});
    release = tryFileLock(file);
  }
  try {
    return await work();
  } finally {
    release();
  }
}
