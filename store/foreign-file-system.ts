/**
 * The folder of somebody else's store, to be read alone. A link in it may name any file of this user's, and a copy of the
 * run would then hold that file: links, pipes and devices are not listed, and are refused where something names them.
 */
import { constants } from 'node:fs';
import { lstat, open, readdir, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

import { TemperError } from '../core/failures.ts';
import { errorCode, nodeFileSystem, type FileSystem } from './file-system.ts';

/** Absent on Windows, where no pipe waits for a writer either. */
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK }: Record<string, number | undefined> = constants;
const PLAIN = (O_RDONLY ?? 0) | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);

export function foreignFileSystem(root: string): FileSystem {
  const checkFolder = async (folder: string): Promise<void> => {
    const real = join(await realpath(root), relative(root, folder));
    if ((await realpath(folder)) !== real) throw notInside(folder);
  };
  const unlessMissing = async <T>(read: () => Promise<T>): Promise<T | null> => {
    try {
      return await read();
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null;
      throw error;
    }
  };
  return {
    ...nodeFileSystem,
    fileBytes: (file) =>
      unlessMissing(async () => {
        await checkFolder(dirname(file));
        const found = await lstat(file);
        if (!found.isFile()) throw notInside(file);
        return found.size;
      }),
    readFile: (file) =>
      unlessMissing(async () => {
        await checkFolder(dirname(file));
        return readPlainFile(file);
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

async function readPlainFile(file: string): Promise<Uint8Array> {
  const handle = await open(file, PLAIN).catch((error: unknown) => {
    throw errorCode(error) === 'ELOOP' ? notInside(file) : error;
  });
  try {
    if (!(await handle.stat()).isFile()) throw notInside(file);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

function notInside(path: string): TemperError {
  return new TemperError(
    'StoreCorrupt',
    `${path} must be a file or folder of the store itself, it is a link or something else; copy the store with its links replaced by the files that they point to`,
  );
}
