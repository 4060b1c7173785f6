/** A disk's refusal in words: which folder, why, and what to do. */
import { TemperError } from '../../core/contract/failures.ts';
import { errorCode } from './file-system.ts';

const REMEDIES: Record<string, string> = {
  ENOSPC: 'the disk is full; free some space there',
  EDQUOT: 'the quota is used up; free some space there',
  EROFS: 'the file system is read-only; remount it writable or choose another store',
  EACCES: 'permission denied; make the folder writable for this user or choose another store',
  EPERM: 'permission denied; make the folder writable for this user or choose another store',
  ENOTDIR: 'a file stands where a folder should be; choose another store',
  EMFILE: 'too many open files; raise the limit (ulimit -n)',
  ENFILE: 'too many open files on this machine; close some',
  EIO: 'the disk reports an error; look at the system log',
};

/** Failures that are typed already pass unchanged. */
export function asUnavailable(error: unknown, folder: string): TemperError {
  if (error instanceof TemperError) return error;
  const code = errorCode(error);
  const remedy = (code === undefined ? undefined : REMEDIES[code]) ?? String(error);
  const shown = code === undefined ? '' : ` (${code})`;
  return new TemperError('StoreUnavailable', `the store in ${folder} refused${shown}: ${remedy}`, { cause: error });
}
