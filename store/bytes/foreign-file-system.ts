/**
 * Read-only view of another user's store. A link in it may name any file of this user's, and a copy of the run would
 * then contain that file: links, pipes and devices are not listed, and are refused if something names them.
 */
import { constants } from 'node:fs';
import { lstat, open, readdir, readlink, realpath, type FileHandle } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

import { TemperError } from '../../core/contract/failures.ts';
import { errorCode, nodeFileSystem, orNull, type FileSystem } from './file-system.ts';

const PLAIN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export function foreignFileSystem(root: string): FileSystem {
  const realPlace = async (path: string): Promise<string> => join(await realpath(root), relative(root, path));
  const checkFolder = async (folder: string): Promise<void> => {
    if ((await realpath(folder)) !== (await realPlace(folder))) throw notInside(folder);
  };
  const unlessMissing = <T>(read: () => Promise<T>): Promise<T | null> => orNull(read());
  return {
    ...nodeFileSystem,
    stat: (file) =>
      unlessMissing(async () => {
        await checkFolder(dirname(file));
        const found = await lstat(file);
        if (!found.isFile()) throw notInside(file);
        return { bytes: found.size, modifiedAtMs: found.mtimeMs };
      }),
    readFile: (file) =>
      unlessMissing(async () => {
        await checkFolder(dirname(file));
        return readPlainFile(file, await realPlace(file));
      }),
    readFolder: (folder) =>
      unlessMissing(async () => {
        await checkFolder(folder);
        const entries = await readdir(folder, { withFileTypes: true });
        const own = entries.filter((entry) => entry.isFile() || entry.isDirectory());
        return own.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
      }),
  };
}

/** A folder of its path may have become a link since it was looked at: what was opened is what counts. */
async function readPlainFile(file: string, real: string): Promise<Uint8Array> {
  const handle = await open(file, PLAIN).catch((error: unknown) => {
    throw errorCode(error) === 'ELOOP' ? notInside(file) : error;
  });
  try {
    if (!(await handle.stat()).isFile() || !(await isAt(handle, real))) throw notInside(file);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Linux reports an open file's path; elsewhere the file at that place must be the same one. */
async function isAt(handle: FileHandle, real: string): Promise<boolean> {
  if (process.platform === 'linux')
    // A file that its writer has just replaced is still the one that was there.
    return (await readlink(`/proc/self/fd/${handle.fd}`)).replace(/ \(deleted\)$/, '') === real;
  const [opened, there] = [await handle.stat(), await lstat(real)];
  return opened.dev === there.dev && opened.ino === there.ino && (await realpath(real)) === real;
}

function notInside(path: string): TemperError {
  return new TemperError(
    'StoreCorrupt',
    `${path} must be a file or folder of the store itself, it is a link or something else; copy the store with its links replaced by the files that they point to`,
  );
}
