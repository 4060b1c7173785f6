/**
 * The store in a folder. Bytes are written to a temporary file beside their place and synchronised, then renamed
 * (blobs: one name, one content) or linked (write-once: EEXIST means that another writer was first), then the folder is
 * synchronised. A name therefore always has complete content, even if a writer is killed.
 */
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import type { BlobRef } from '../../core/contract/contract.ts';
import { KEPT_UNNAMED_MS } from '../../core/contract/wire-constants.ts';
import { errorCode, nodeFileSystem, type FileSystem } from './file-system.ts';
import { openFileJournal } from './file-journal.ts';
import { checkKey, isKey } from './keys.ts';
import { blobRef, verifyBlob } from './sha256.ts';
import type { JournalSegments, Published, Store, StoredObject } from '../store.ts';
import { readStoreId } from './store-id.ts';
import { asUnavailable } from './unavailable.ts';

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
    return this.#reaching(async () => {
      await this.#files.makeFolder(this.#root, CLOSED_MODE);
      const probe = join(this.#root, temporaryName());
      await this.#files.createFile(probe, new Uint8Array(), false);
      await this.#files.unlink(probe);
    });
  }

  putBlob(bytes: Uint8Array): Promise<BlobRef> {
    return this.#reaching(async () => {
      const ref = blobRef(bytes);
      const file = this.#path(ref.key);
      const present = (await this.#files.stat(file))?.bytes;
      if (present !== bytes.length || !(await this.#renew(file))) await this.#put(file, bytes);
      return ref;
    });
  }

  async getBlob(ref: BlobRef): Promise<Uint8Array> {
    return verifyBlob(await this.read(ref.key), ref, this.#root);
  }

  blobBytes(ref: BlobRef): Promise<number | null> {
    return this.#reaching(async () => (await this.#files.stat(this.#path(ref.key)))?.bytes ?? null);
  }

  removeBlob(ref: BlobRef): Promise<void> {
    return this.#reaching(() => this.#files.unlink(this.#path(ref.key)).catch(ignoreMissing));
  }

  publish(key: string, bytes: Uint8Array): Promise<Published> {
    return this.#reaching(async () => {
      const file = this.#path(key);
      const winner = await this.#files.readFile(file);
      if (winner !== null) return { created: false, bytes: winner };
      return this.#publishNew(file, bytes);
    });
  }

  read(key: string): Promise<Uint8Array | null> {
    return this.#reaching(() => this.#files.readFile(this.#path(key)));
  }

  replace(key: string, bytes: Uint8Array): Promise<void> {
    return this.#reaching(() => this.#put(this.#path(key), bytes));
  }

  async *list(prefix: string): AsyncIterable<string> {
    const entries = (await this.#reaching(() => this.#files.readFolder(this.#path(prefix)))) ?? [];
    const visible = entries.filter(({ name }) => !name.startsWith('.'));
    for (const { name, isFolder } of visible.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      yield `${prefix}/${name}${isFolder ? '/' : ''}`;
    }
  }

  async *describe(prefix: string): AsyncIterable<StoredObject> {
    for await (const object of this.#walk(prefix)) if (isKey(object.key)) yield object;
  }

  async *unfinished(): AsyncIterable<StoredObject> {
    for await (const object of this.#walk('')) if (TEMPORARY.test(nameOf(object.key))) yield object;
  }

  removeUnchanged({ key, modifiedAtMs }: StoredObject): Promise<boolean> {
    return this.#reaching(async () => {
      const file = this.#pathOf(key);
      const found = await this.#files.stat(file);
      if (found === null || found.modifiedAtMs > modifiedAtMs) return false;
      await this.#files.unlink(file).catch(ignoreMissing);
      await this.#removeEmptyFolders(key);
      return true;
    });
  }

  openJournal(prefix: string): Promise<JournalSegments> {
    return openFileJournal(this.#files, this.#path(prefix), this.#root);
  }

  removeFolder(prefix: string): Promise<void> {
    return this.#reaching(() => this.#files.removeFolder(this.#path(prefix)));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #path(key: string): string {
    return join(this.#root, checkKey(key));
  }

  /** Accepts names of temporary files, which are no keys. */
  #pathOf(key: string): string {
    const name = nameOf(key);
    if (!TEMPORARY.test(name)) return this.#path(key);
    return join(name === key ? this.#root : this.#path(key.slice(0, -name.length - 1)), name);
  }

  /** Everything under a folder except folders, temporary files included. */
  async *#walk(prefix: string): AsyncIterable<StoredObject> {
    const folder = prefix === '' ? this.#root : this.#path(prefix);
    for (const { name, isFolder } of (await this.#reaching(() => this.#files.readFolder(folder))) ?? []) {
      const key = prefix === '' ? name : `${prefix}/${name}`;
      if (isFolder && isKey(key)) yield* this.#walk(key);
      if (isFolder) continue;
      const found = await this.#reaching(() => this.#files.stat(join(folder, name)));
      // Null: gone since the folder was read.
      if (found !== null) yield { key, ...found };
    }
  }

  /** Removes empty folders up to the run's own: a bucket has no empty folders. */
  async #removeEmptyFolders(key: string): Promise<void> {
    const names = key.split('/').slice(0, -1);
    while (names.length > 1 && (await this.#files.removeEmptyFolder(join(this.#root, ...names)))) names.pop();
  }

  /** So that an old one is not removed at this moment. False if it is gone, or another user's: then it is put again. */
  async #renew(file: string): Promise<boolean> {
    const found = await this.#files.stat(file);
    if (found !== null && Date.now() - found.modifiedAtMs < KEPT_UNNAMED_MS / 2) return true;
    try {
      await this.#files.touch(file);
      return true;
    } catch (error) {
      if (['ENOENT', 'EPERM', 'EACCES'].includes(errorCode(error) ?? '')) return false;
      throw error;
    }
  }

  async #publishNew(file: string, bytes: Uint8Array): Promise<Published> {
    const temporary = await this.#writeTemporary(file, bytes);
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

  async #put(file: string, bytes: Uint8Array): Promise<void> {
    const temporary = await this.#writeTemporary(file, bytes);
    try {
      await this.#files.rename(temporary, file);
    } catch (error) {
      await this.#discard(temporary);
      throw error;
    }
    await this.#files.syncFolder(dirname(file));
  }

  async #writeTemporary(file: string, bytes: Uint8Array): Promise<string> {
    const folder = dirname(file);
    await this.#files.makeFolder(this.#root, CLOSED_MODE);
    await this.#files.makeFolder(folder);
    const temporary = join(folder, temporaryName());
    try {
      await this.#files.createFile(temporary, bytes, true);
    } catch (error) {
      await this.#discard(temporary);
      throw error;
    }
    return temporary;
  }

  /** A leftover temporary file is not an error: it is never listed or read. */
  async #discard(temporary: string): Promise<void> {
    await this.#files.unlink(temporary).catch(() => undefined);
  }

  async #reaching<T>(reach: () => Promise<T>): Promise<T> {
    try {
      return await reach();
    } catch (error) {
      throw asUnavailable(error, this.#root);
    }
  }
}

/** A store that Temper makes is for its user alone; who shares one gives its folder another mode. */
const CLOSED_MODE = 0o700;

function ignoreMissing(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error;
}

/** Temporary names: `.<uuid>.tmp`, and Python's `.<name>.<pid>.<random>.tmp` (`store/file_store.py` there). */
const TEMPORARY = /^\.([0-9a-f-]{36}|.+\.\d+\.[0-9a-f]{8})\.tmp$/;

const nameOf = (key: string): string => key.slice(key.lastIndexOf('/') + 1);

function temporaryName(): string {
  return `.${randomUUID()}.tmp`;
}
