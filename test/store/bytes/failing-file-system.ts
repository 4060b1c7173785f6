/** A disk that refuses: its operations are the real ones until the one that is told to fail. */
import { nodeFileSystem, type AppendFile, type FileSystem } from '../../../store/bytes/file-system.ts';

const READS = new Set<keyof FileSystem>(['stat', 'readFile', 'readFolder']);

export interface FailingFileSystem {
  files: FileSystem;
  /** How many writing operations were begun. */
  writes(): number;
}

/** Lets the write number `failing` (from 0) and all that follow fail with `code`. */
export function failingFileSystem(code: string, failing: number): FailingFileSystem {
  let count = 0;
  const check = (): void => {
    if (count++ >= failing) throw Object.assign(new Error(`${code}: told to fail`), { code });
  };
  const wrapped = Object.fromEntries(
    Object.entries(nodeFileSystem).map(([name, operation]) => [
      name,
      READS.has(name as keyof FileSystem)
        ? operation
        : name === 'openAppend'
          ? (file: string) => failingAppend(check, file)
          : async (...values: never[]) => {
              check();
              return (operation as (...values: never[]) => unknown)(...values);
            },
    ]),
  ) as unknown as FileSystem;
  return { files: wrapped, writes: () => count };
}

function failingAppend(check: () => void, file: string): AppendFile {
  check();
  const real = nodeFileSystem.openAppend(file);
  return {
    append(bytes) {
      try {
        check();
      } catch (error) {
        // A full disk does this: a part of the record is there.
        real.append(bytes.subarray(0, bytes.length - 3));
        throw error;
      }
      real.append(bytes);
    },
    close: () => real.close(),
  };
}
