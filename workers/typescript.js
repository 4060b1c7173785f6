/**
 * Registers tsx, with a cache of compiled files that only this user can write. By default tsx loads code from
 * `tsx-<uid>` in the temporary directory, even if another user created that folder.
 */
import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const FOLDER = 0o40000;
const STICKY = 0o1000;

const { TMPDIR } = process.env;
const folder = privateFolder();
if (folder !== null) process.env.TMPDIR = folder;
else process.env.TSX_DISABLE_CACHE = '1';
try {
  // tsx reads the name of the temporary directory once, while it loads.
  await import('tsx');
} finally {
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
}

/** The same folder as `cacheFolder` in folders.ts, which cannot be imported before tsx. */
function userCache() {
  if (process.env.TEMPER_CACHE) return process.env.TEMPER_CACHE;
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches', 'temper');
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'temper');
}

/** The folder's real path, or null if there is none, or anyone else could have put files there. */
function privateFolder() {
  try {
    const path = join(userCache(), 'tsx');
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (!isOwn(path)) return null;
    const real = realpathSync(path);
    return parents(real).every(onlyOwnersWrite) ? real : null;
  } catch {
    return null;
  }
}

/** A folder, not a link to one, with permissions for its owner alone. */
function isOwn(path) {
  const { uid, mode } = lstatSync(path);
  return uid === process.geteuid() && mode === (FOLDER | 0o700);
}

/** Writers of a parent can replace what is in it, except in a sticky folder. */
function onlyOwnersWrite(path) {
  const { uid, gid, mode } = lstatSync(path);
  if (uid !== process.geteuid() && uid !== 0) return false;
  const groupWrites = (mode & 0o020) !== 0 && gid !== process.getegid();
  const othersWrite = (mode & 0o002) !== 0;
  return (mode & STICKY) !== 0 || !(groupWrites || othersWrite);
}

function parents(path) {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...parents(parent)];
}
