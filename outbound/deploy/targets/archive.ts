/** A `.tar.gz` with files at its root: the same files make the same bytes. */
import { gzipSync } from 'node:zlib';

const BLOCK = 512;
/** Offsets of the fields of a header, in the format `ustar` of POSIX. */
const FIELDS = { name: 0, mode: 100, uid: 108, gid: 116, size: 124, mtime: 136, checksum: 148, type: 156, magic: 257 };

export interface ArchiveFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

export function archive(files: readonly ArchiveFile[]): Uint8Array {
  const blocks = files.flatMap(({ path, bytes }) => [header(path, bytes.byteLength), padded(bytes)]);
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level: 1 });
}

function header(path: string, bytes: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const put = (text: string, at: number): void => void block.write(text, at, 'latin1');
  put(path, FIELDS.name);
  put(octal(0o644, 7), FIELDS.mode);
  put(octal(0, 7), FIELDS.uid);
  put(octal(0, 7), FIELDS.gid);
  put(octal(bytes, 11), FIELDS.size);
  put(octal(0, 11), FIELDS.mtime);
  put('0', FIELDS.type);
  put('ustar\u000000', FIELDS.magic);
  // The checksum counts its own field as spaces.
  put(' '.repeat(8), FIELDS.checksum);
  put(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    FIELDS.checksum,
  );
  return block;
}

const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');

function padded(bytes: Uint8Array): Buffer {
  const block = Buffer.alloc(Math.ceil(bytes.byteLength / BLOCK) * BLOCK);
  block.set(bytes);
  return block;
}
