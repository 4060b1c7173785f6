/** The few operations the file store needs of a disk: a seam, so that tests can let each of them fail in turn. */
import { closeSync, constants, existsSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { link, mkdir, open, readdir, readFile, rename, rm, rmdir, stat, unlink, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface FileSystem {
  /** With its parents, all of that mode; those it made are on disk when it returns. */
  makeFolder(folder: string, mode?: number): Promise<void>;
  /** Creates a file; on disk on return if `durable`. Fails if the name is taken. */
  createFile(file: string, bytes: Uint8Array, durable: boolean): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Fails with EEXIST where the name is taken: that is what makes a write-once object. */
  link(from: string, to: string): Promise<void>;
  unlink(file: string): Promise<void>;
  removeFolder(folder: string): Promise<void>;
  /** False if it is missing or not empty. */
  removeEmptyFolder(folder: string): Promise<boolean>;
  /** Puts the names of a folder on disk. */
  syncFolder(folder: string): Promise<void>;
  /** Its size and the time of its last write; null if there is no such file. */
  stat(file: string): Promise<FileStat | null>;
  /** Makes it as if it was written now. */
  touch(file: string): Promise<void>;
  readFile(file: string): Promise<Uint8Array | null>;
  /** Null if there is no such folder. */
  readFolder(folder: string): Promise<FolderEntry[] | null>;
  /** A new file for appending, synchronously: a record is written before its answer is handed on. */
  openAppend(file: string): AppendFile;
}

interface FileStat {
  bytes: number;
  modifiedAtMs: number;
}

interface FolderEntry {
  name: string;
  isFolder: boolean;
}

export interface AppendFile {
  append(bytes: Uint8Array): void;
  close(): void;
}

export const nodeFileSystem: FileSystem = {
  async makeFolder(folder, mode = 0o777) {
    const first = await mkdir(folder, { recursive: true, mode }).catch((error: unknown) => {
      throw reasonOf(error, folder);
    });
    if (first !== undefined) await syncMade(dirname(first), folder);
  },
  async createFile(file, bytes, durable) {
    const handle = await open(file, 'wx');
    try {
      await handle.writeFile(bytes);
      if (durable) await handle.sync();
    } finally {
      await handle.close();
    }
  },
  rename,
  link,
  unlink,
  removeFolder: (folder) => rm(folder, { recursive: true, force: true }),
  async removeEmptyFolder(folder) {
    try {
      await rmdir(folder);
      return true;
    } catch (error) {
      if (['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errorCode(error) ?? '')) return false;
      throw error;
    }
  },
  syncFolder,
  async stat(file) {
    const found = await orNull(stat(file));
    return found && { bytes: found.size, modifiedAtMs: found.mtimeMs };
  },
  async touch(file) {
    const now = new Date();
    await utimes(file, now, now);
  },
  readFile: (file) => orNull(readFile(file)),
  async readFolder(folder) {
    const entries = await orNull(readdir(folder, { withFileTypes: true }));
    return entries?.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() })) ?? null;
  },
  openAppend(file) {
    makeFolderSync(dirname(file));
    const descriptor = openSync(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND);
    return {
      append: (bytes) => writeAll(descriptor, bytes),
      close: () => closeSync(descriptor),
    };
  },
};

function makeFolderSync(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw reasonOf(error, folder);
  }
}

/** Node's recursive mkdir says ENOENT if the disk is read-only; the first missing folder, made alone, says why. */
function reasonOf(error: unknown, folder: string): unknown {
  if (errorCode(error) !== 'ENOENT') return error;
  let missing = folder;
  while (!existsSync(dirname(missing))) missing = dirname(missing);
  try {
    mkdirSync(missing);
    return error;
  } catch (reason) {
    return errorCode(reason) === 'EEXIST' ? error : reason;
  }
}

/** One write for one record; a disk that takes a part of it is asked for the rest. */
function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length;) {
    written += writeSync(descriptor, bytes, written, bytes.length - written);
  }
}

/** A folder's name is on disk once the folder above it was synchronised. */
async function syncMade(above: string, folder: string): Promise<void> {
  for (let current = dirname(folder); current.length > above.length; current = dirname(current)) {
    await syncFolder(current);
  }
  await syncFolder(above);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Null if there is no such file or folder. */
export async function orNull<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
