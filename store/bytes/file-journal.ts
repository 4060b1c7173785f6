/** Segments of a journal as files `<number>.journal`. No fsync: a record survives the death of processes, not of the host. */
import { join } from 'node:path';

import { errorCode, type AppendFile, type FileSystem } from './file-system.ts';
import type { JournalSegments } from '../store.ts';
import { asUnavailable } from './unavailable.ts';

const SEGMENT = /^(\d+)\.journal$/;

export async function openFileJournal(files: FileSystem, folder: string, root: string): Promise<JournalSegments> {
  try {
    const numbers = await listSegments(files, folder);
    const existing = await Promise.all(numbers.map((number) => files.readFile(segmentFile(folder, number))));
    const next = (numbers.at(-1) ?? -1) + 1;
    const present = existing.filter((bytes) => bytes !== null);
    return new FileJournal(files, folder, root, next, present);
  } catch (error) {
    throw asUnavailable(error, root);
  }
}

class FileJournal implements JournalSegments {
  readonly existing: readonly Uint8Array[];
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #root: string;
  readonly #next: number;
  #file: AppendFile | null = null;
  #broken: Error | null = null;

  constructor(files: FileSystem, folder: string, root: string, next: number, existing: readonly Uint8Array[]) {
    this.#files = files;
    this.#folder = folder;
    this.#root = root;
    this.#next = next;
    this.existing = existing;
  }

  append(record: Uint8Array): void {
    if (this.#broken !== null) throw this.#broken;
    try {
      this.#file ??= openNextFree(this.#files, this.#folder, this.#next);
      this.#file.append(record);
    } catch (error) {
      // Nothing is read after a torn record: the next writer begins a new segment.
      this.#broken = asUnavailable(error, this.#root);
      throw this.#broken;
    }
  }

  close(): void {
    this.#file?.close();
    this.#file = null;
    this.#broken ??= new Error('the journal is closed');
  }
}

function openNextFree(files: FileSystem, folder: string, from: number): AppendFile {
  for (let number = from; ; number++) {
    try {
      return files.openAppend(segmentFile(folder, number));
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
    }
  }
}

async function listSegments(files: FileSystem, folder: string): Promise<number[]> {
  const entries = (await files.readFolder(folder)) ?? [];
  const numbers = entries.map(({ name }) => SEGMENT.exec(name)?.[1]).filter((number) => number !== undefined);
  return numbers.map(Number).toSorted((a, b) => a - b);
}

function segmentFile(folder: string, number: number): string {
  return join(folder, `${number}.journal`);
}
