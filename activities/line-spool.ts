import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BLOCK_BYTES = 1024 ** 2;

/**
 * Lines that are kept until all of them are known: in memory, and in a temporary file as soon as they are many. The file
 * has no name once it is open, so that a killed process leaves nothing behind.
 */
export class LineSpool {
  readonly #limit: number;
  readonly #lengths: number[] = [];
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #file: FileHandle | null = null;
  #fileBytes = 0;

  constructor(maxBytesInMemory: number) {
    this.#limit = maxBytesInMemory;
  }

  async add(line: Uint8Array): Promise<void> {
    this.#lengths.push(line.length);
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    if (this.#waitingBytes > this.#limit) await this.#moveToFile();
  }

  /** In the order in which they were added. */
  async *select(isWanted: (index: number) => boolean): AsyncGenerator<Uint8Array> {
    let index = 0;
    for await (const line of this.#fromFile()) if (isWanted(index++)) yield line;
    for (const line of this.#waiting) if (isWanted(index++)) yield line;
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  async #moveToFile(): Promise<void> {
    this.#file ??= await openNameless();
    await this.#file.appendFile(Buffer.concat(this.#waiting));
    this.#fileBytes += this.#waitingBytes;
    [this.#waiting, this.#waitingBytes] = [[], 0];
  }

  async *#fromFile(): AsyncGenerator<Uint8Array> {
    let [index, rest] = [0, Buffer.alloc(0)];
    for await (const block of this.#blocks()) {
      rest = Buffer.concat([rest, block]);
      let start = 0;
      for (let end = this.#endOf(index, start); end <= rest.length; end = this.#endOf(++index, start)) {
        yield rest.subarray(start, end);
        start = end;
      }
      rest = rest.subarray(start);
    }
  }

  #endOf(index: number, start: number): number {
    return start + (this.#lengths[index] ?? Infinity);
  }

  async *#blocks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < this.#fileBytes;) {
      const buffer = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, this.#fileBytes - at));
      const { bytesRead } = await this.#file!.read(buffer, 0, buffer.length, at);
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }
}

async function openNameless(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-scenarios-'));
  try {
    return await open(join(folder, 'lines'), 'w+', 0o600);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
