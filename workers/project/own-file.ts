/** Files of this user: what another user of the machine wrote, or linked to, is not read. */
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  type Stats,
} from 'node:fs';

const OTHERS_WRITE = 0o022;
const OTHERS_LOOK = 0o077;

/** Null if the file is missing, or not this user's own: a link, or a file that others can change. */
export function readOwnFile(file: string): string | null {
  let fd: number;
  try {
    // A pipe, which would never open, is refused below.
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    const stats = fstatSync(fd);
    return stats.isFile() && isOwn(stats) && (stats.mode & OTHERS_WRITE) === 0 ? readFileSync(fd, 'utf8') : null;
  } finally {
    closeSync(fd);
  }
}

/** Readers see the old bytes or the new ones. */
export function writeAtomically(file: string, text: string): void {
  const temporary = `${file}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  // Never through a link.
  writeFileSync(temporary, text, { mode: 0o600, flag: 'wx' });
  renameSync(temporary, file);
}

export function isOwnSocket(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && stats.isSocket() && isOwn(stats);
}

/** Folder that no other user can write to; a link to one only if `look` follows it. */
export function isOwnFolder(path: string, look: typeof lstatSync = lstatSync): boolean {
  const stats = look(path, { throwIfNoEntry: false });
  return stats !== undefined && stats.isDirectory() && isOwn(stats) && (stats.mode & OTHERS_WRITE) === 0;
}

/**
 * Makes a folder that no other user can look into, also where an earlier one was open. False: it is another user's, a link,
 * or cannot be made.
 */
export function makePrivateFolder(path: string): boolean {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (!isOwnFolder(path)) return false;
    if ((lstatSync(path).mode & OTHERS_LOOK) !== 0) chmodSync(path, 0o700);
    return true;
  } catch {
    return false;
  }
}

export function isOwn({ uid }: Stats): boolean {
  return uid === process.geteuid!();
}
