import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { hashOf } from '../../core/text/hashes.ts';
import { cacheFolder } from '../../store/cache-folder.ts';

/**
 * Answers and files of one revision of a data set, in the user's cache: they do not change, the command line reads them
 * before a worker does, and an outage does not ask for them again. A file has its name only once it is whole.
 */
export class HubCache {
  readonly #folder: string;

  constructor(place: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    this.#folder = join(cacheFolder(env), 'datasets', hashOf(place).slice(0, 32));
  }

  async read(name: string): Promise<string | null> {
    try {
      return await readFile(join(this.#folder, name), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** A page is not worth an error: where the cache cannot be written, it is read again. */
  async writePage(name: string, text: string): Promise<void> {
    await this.#whole(name, (file) => writeFile(file, text, { mode: 0o600 })).catch(ignoreUnwritable);
  }

  /** Path of a file of `bytes` bytes, which is made once. */
  async file(name: string, bytes: number, make: (save: Save) => Promise<void>): Promise<string> {
    const path = join(this.#folder, name);
    const found = await stat(path).catch(() => null);
    if (found?.size !== bytes) await make((body) => this.#whole(name, (file) => save(body, file, bytes)));
    return path;
  }

  async #whole(name: string, write: (file: string) => Promise<void>): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const temporary = join(this.#folder, `.${randomUUID()}.tmp`);
    try {
      await write(temporary);
      await rename(temporary, join(this.#folder, name));
    } finally {
      await rm(temporary, { force: true });
    }
  }
}

type Save = (body: ReadableStream<Uint8Array>) => Promise<void>;

const IDLE_MS = 60_000;

/** No more than was announced is written, and none of what stops coming. */
async function save(body: ReadableStream<Uint8Array>, file: string, bytes: number): Promise<void> {
  const idle = new AbortController();
  const timer = setTimeout(() => idle.abort(new Error(`nothing came for ${IDLE_MS / 1000} s`)), IDLE_MS);
  let left = bytes;
  const count = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      timer.refresh();
      left -= chunk.byteLength;
      if (left < 0) throw new Error(`the file has more than ${bytes} bytes`);
      yield chunk;
    }
  };
  const signals = { signal: idle.signal };
  await pipeline(Readable.fromWeb(body as never), count, createWriteStream(file, { mode: 0o600 }), signals).finally(
    () => clearTimeout(timer),
  );
  const { size } = await stat(file);
  if (size !== bytes) throw new Error(`the file has ${size} bytes of ${bytes}`);
}

function ignoreUnwritable(error: NodeJS.ErrnoException): void {
  if (!['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'ENOTDIR'].includes(error.code ?? '')) throw error;
}
