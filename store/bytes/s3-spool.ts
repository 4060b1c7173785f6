/** Journal segments on this host until the bucket has them. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import pLimit from 'p-limit';

import { TemperError } from '../../core/contract/failures.ts';
import type { AppendFile, FileSystem } from './file-system.ts';
import type { S3Objects } from './s3-objects.ts';
import { asUnavailable } from './unavailable.ts';

const PARALLEL_UPLOADS = 4;
const AGAIN_MS = 2000;

export class Spool {
  readonly folder: string;
  readonly #files: FileSystem;
  readonly #objects: S3Objects;
  readonly #limit = pLimit(PARALLEL_UPLOADS);
  readonly #uploads = new Set<Promise<void>>();
  /** Uploads in progress, by key. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(folder: string, files: FileSystem, objects: S3Objects) {
    this.folder = folder;
    this.#files = files;
    this.#objects = objects;
  }

  /** Segments by name, from all processes: those that died and those still writing. */
  async read(prefix: string): Promise<Map<string, Uint8Array>> {
    try {
      const entries = (await this.#files.readFolder(join(this.folder, prefix))) ?? [];
      const present = entries.filter(({ isFolder }) => !isFolder);
      const read = present.map(
        async ({ name }) => [name, await this.#files.readFile(this.#file(prefix, name))] as const,
      );
      return new Map((await Promise.all(read)).flatMap(([name, bytes]) => (bytes === null ? [] : [[name, bytes]])));
    } catch (error) {
      throw asUnavailable(error, this.folder);
    }
  }

  openAppend(prefix: string, name: string): AppendFile {
    return this.#files.openAppend(this.#file(prefix, name));
  }

  /** Returns at once: until the bucket has the segment, this host does. */
  upload(prefix: string, name: string): void {
    const upload = this.#limit(() => this.#untilStored(prefix, name)).finally(() => this.#uploads.delete(upload));
    this.#uploads.add(upload);
  }

  /** Waits for the uploads, but not longer. */
  async settle(withinMs: number): Promise<void> {
    const over = new AbortController();
    const late = sleep(withinMs, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([Promise.allSettled(this.#uploads), late]);
    over.abort();
  }

  async remove(prefix: string): Promise<void> {
    try {
      await this.#files.removeFolder(join(this.folder, prefix));
    } catch (error) {
      throw asUnavailable(error, this.folder);
    }
    // An upload in progress would stay in the bucket.
    const late = [...this.#underWay].filter(([key]) => key.startsWith(`${prefix}/`));
    await Promise.allSettled(late.map(([, upload]) => upload));
  }

  async #untilStored(prefix: string, name: string): Promise<void> {
    const key = `${prefix}/${name}`;
    for (;;) {
      const storing = this.#store(key);
      this.#underWay.set(key, storing);
      try {
        return await storing;
      } catch (error) {
        // Not lost, and not silent: an attempt's result goes to the same bucket, and that refusal is thrown.
        if (error instanceof TemperError && !error.retryable) return;
      } finally {
        this.#underWay.delete(key);
      }
      await sleep(AGAIN_MS, undefined, { ref: false });
    }
  }

  async #store(key: string): Promise<void> {
    const file = join(this.folder, key);
    const bytes = await this.#files.readFile(file);
    // The journal was removed meanwhile.
    if (bytes === null) return;
    await this.#objects.put(key, bytes);
    await this.#files.unlink(file);
  }

  #file(prefix: string, name: string): string {
    return join(this.folder, prefix, name);
  }
}
