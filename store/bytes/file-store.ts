/**
 * The store in a folder. Bytes are written to a temporary file beside their place and synchronised, then renamed (blobs:
 * one name, one content) or linked (write-once: EEXIST means that somebody was first), then the folder is synchronised.
 * What is under a name is therefore always whole, whatever is killed when.
 */
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import type { BlobRef } from '../../core/contract.ts';
import { errorCode, nodeFileSystem, type FileSystem } from './file-system.ts';
import { openFileJournal } from './file-journal.ts';
import { checkKey } from './keys.ts';
import { blobRef } from './sha256.ts';
import type { JournalSegments, Published, Store } from '../store.ts';
import { readStoreId } from './store-id.ts';
import { asUnavailable } from './unavailable.ts';
import { verifyBlob } from './verify-blob.ts';

export class FileStore implements Store {
  readonly uri: string;
  readonly #root: string;
  readonly #files: FileSystem;
  #knownId: string | null = null;

  constructor(root: string, files: FileSystem = nodeFileSystem) {
    this.#root = root;
    this.#files = files;
    this.uri = pathToFileURL(root).href;
  }

  async id(): Promise<string> {
    this.#knownId ??= await readStoreId(this);
    return this.#knownId;
  }

  checkWritable(): Promise<void> {
    return this.#writing(async () => {
      await this.#files.makeFolder(this.#root);
      const probe = join(this.#root, temporaryName());
      await this.#files.createFile(probe, new Uint8Array(), false);
      await this.#files.unlink(probe);
    });
  }

  putBlob(bytes: Uint8Array): Promise<BlobRef> {
    return this.#writing(async () => {
      const ref = blobRef(bytes);
      const file = this.#path(ref.key);
      const present = await this.#files.fileBytes(file);
      if (present !== bytes.length) await this.#put(file, bytes, true);
      return ref;
    });
  }

  async getBlob(ref: BlobRef): Promise<Uint8Array> {
    return verifyBlob(await this.read(ref.key), ref, this.#root);
  }

  async blobBytes(ref: BlobRef): Promise<number | null> {
    const file = this.#path(ref.key);
    try {
      return await this.#files.fileBytes(file);
    } catch (error) {
      throw asUnavailable(error, this.#root);
    }
  }

  removeBlob(ref: BlobRef): Promise<void> {
    return this.#writing(() => this.#files.unlink(this.#path(ref.key)).catch(ignoreMissing));
  }

  publish(key: string, bytes: Uint8Array): Promise<Published> {
    return this.#writing(async () => {
      const file = this.#path(key);
      const winner = await this.#files.readFile(file);
      if (winner !== null) return { created: false, bytes: winner };
      return this.#publishNew(file, bytes);
    });
  }

  async read(key: string): Promise<Uint8Array | null> {
    const file = this.#path(key);
    try {
      return await this.#files.readFile(file);
    } catch (error) {
      throw asUnavailable(error, this.#root);
    }
  }

  replace(key: string, bytes: Uint8Array): Promise<void> {
    return this.#writing(() => this.#put(this.#path(key), bytes, false));
  }

  async *list(prefix: string): AsyncIterable<string> {
    const entries = (await this.#files.readFolder(this.#path(prefix))) ?? [];
    const visible = entries.filter(({ name }) => !name.startsWith('.'));
    for (const { name, isFolder } of visible.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      yield `${prefix}/${name}${isFolder ? '/' : ''}`;
    }
  }

  openJournal(prefix: string): Promise<JournalSegments> {
    return openFileJournal(this.#files, this.#path(prefix), this.#root);
  }

  removeFolder(prefix: string): Promise<void> {
    return this.#writing(() => this.#files.removeFolder(this.#path(prefix)));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #path(key: string): string {
    return join(this.#root, checkKey(key));
  }

  async #publishNew(file: string, bytes: Uint8Array): Promise<Published> {
    const temporary = await this.#writeTemporary(file, bytes, true);
    try {
      await this.#files.link(temporary, file);
    } catch (error) {
      const winner = errorCode(error) === 'EEXIST' ? await this.#files.readFile(file) : null;
      if (winner === null) throw error;
      return { created: false, bytes: winner };
    } finally {
      await this.#discard(temporary);
    }
    await this.#files.syncFolder(dirname(file));
    return { created: true, bytes };
  }

  async #put(file: string, bytes: Uint8Array, durable: boolean): Promise<void> {
    const temporary = await this.#writeTemporary(file, bytes, durable);
    try {
      await this.#files.rename(temporary, file);
    } catch (error) {
      await this.#discard(temporary);
      throw error;
    }
    if (durable) await this.#files.syncFolder(dirname(file));
  }

  async #writeTemporary(file: string, bytes: Uint8Array, durable: boolean): Promise<string> {
    const folder = dirname(file);
    await this.#files.makeFolder(folder);
    const temporary = join(folder, temporaryName());
    try {
      await this.#files.createFile(temporary, bytes, durable);
    } catch (error) {
      await this.#discard(temporary);
      throw error;
    }
    return temporary;
  }

  /** A temporary file that stays is litter, not an error: nobody lists or reads it. */
  async #discard(temporary: string): Promise<void> {
    await this.#files.unlink(temporary).catch(() => undefined);
  }

  async #writing<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      throw asUnavailable(error, this.#root);
    }
  }
}

function ignoreMissing(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error;
}

function temporaryName(): string {
  return `.${randomUUID()}.tmp`;
}
