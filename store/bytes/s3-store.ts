/**
 * The store in a bucket. An object is there whole or not at all; write-once is `If-None-Match: *`, so that of many
 * writers the server lets one through. Keys are the file store's, under the prefix.
 */
import { join } from 'node:path';

import { STORE_KEY } from '../../core/contract/wire-constants.ts';
import type { BlobRef } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { nodeFileSystem } from './file-system.ts';
import { checkKey } from './keys.ts';
import { createS3Client, describeEndpoint, S3_TIMEOUTS, type S3Timeouts } from './s3-client.ts';
import { openS3Journal, type UploadLimits } from './s3-journal.ts';
import { repeat, S3Objects } from './s3-objects.ts';
import { Spool } from './s3-spool.ts';
import { blobRef, verifyBlob } from './sha256.ts';
import type { JournalSegments, Published, Store, StoredObject } from '../store.ts';
import { readStoreId } from './store-id.ts';

export interface S3Address {
  bucket: string;
  prefix: string;
}

export interface S3StoreOptions {
  /** Folder for journals until they are uploaded; required to open one. */
  spoolFolder?: string;
  /** Larger objects are uploaded in parts of this size; S3 requires at least 5 MiB. */
  partBytes?: number;
  timeouts?: S3Timeouts;
  uploads?: UploadLimits;
}

const PART_BYTES = 16 * 1024 ** 2;
/** Limits of the journal records that are lost with a host. */
const UPLOADS: UploadLimits = { everyMs: 2000, bytes: 1024 ** 2 };

export async function openS3Store({ bucket, prefix }: S3Address, options: S3StoreOptions = {}): Promise<S3Store> {
  const { partBytes = PART_BYTES, timeouts = S3_TIMEOUTS, uploads = UPLOADS, spoolFolder = null } = options;
  const uri = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
  const client = await createS3Client(timeouts);
  const place = { uri, endpoint: await describeEndpoint(client) };
  const objects = new S3Objects({ client, bucket, prefix, place, partBytes });
  return new S3Store(objects, { spoolFolder, uploads });
}

/** A process that ends has not much longer. */
const CLOSE_WITHIN_MS = 2000;

interface JournalSettings {
  spoolFolder: string | null;
  uploads: UploadLimits;
}

export class S3Store implements Store {
  readonly uri: string;
  readonly #objects: S3Objects;
  readonly #settings: JournalSettings;
  #knownId: string | null = null;
  #knownSpool: Spool | null = null;

  constructor(objects: S3Objects, settings: JournalSettings) {
    this.#objects = objects;
    this.#settings = settings;
    this.uri = objects.place.uri;
  }

  async id(): Promise<string> {
    this.#knownId ??= await readStoreId(this);
    return this.#knownId;
  }

  /** A server that overlooks `If-None-Match` would let two workers commit one step: it is refused here. */
  async checkWritable(): Promise<void> {
    await this.id();
    const present = await this.#objects.get(STORE_KEY);
    // The same bytes: where the server does write them, nothing has changed.
    if (present === null || !(await this.#objects.putNew(STORE_KEY, present))) return;
    const rule = `the server of ${this.uri} must refuse a write with If-None-Match: * to a key that exists`;
    throw badConfig(`${rule}, but it accepted one; use a server or a version that supports conditional writes`);
  }

  async putBlob(bytes: Uint8Array): Promise<BlobRef> {
    const ref = blobRef(bytes);
    if (!(await this.#objects.has(ref.key, ref.bytes))) await this.#objects.put(ref.key, bytes);
    return ref;
  }

  async getBlob(ref: BlobRef): Promise<Uint8Array> {
    return verifyBlob(await this.#objects.get(ref.key), ref, this.uri);
  }

  /** How long a blob is, without reading it; null if it is missing. */
  blobBytes(ref: BlobRef): Promise<number | null> {
    return this.#objects.size(ref.key);
  }

  removeBlob(ref: BlobRef): Promise<void> {
    return this.#objects.remove(ref.key);
  }

  /**
   * A winner with the same bytes counts as one's own, since the answer to the write may have been lost. One that cannot be
   * read was removed or is being replaced: the write is tried again.
   */
  publish(key: string, bytes: Uint8Array): Promise<Published> {
    const unreadable = new TemperError(
      'StoreUnavailable',
      `${key} in ${this.uri} exists but cannot be read; check the server`,
    );
    const isUnreadable = (error: unknown): boolean => error === unreadable;
    return repeat(isUnreadable, async () => {
      if (await this.#objects.putNew(key, bytes)) return { created: true, bytes };
      const winner = await this.#objects.get(key);
      if (winner === null) throw unreadable;
      return { created: Buffer.compare(winner, bytes) === 0, bytes: winner };
    });
  }

  read(key: string): Promise<Uint8Array | null> {
    return this.#objects.get(key);
  }

  replace(key: string, bytes: Uint8Array): Promise<void> {
    return this.#objects.put(key, bytes);
  }

  async *list(prefix: string): AsyncIterable<string> {
    const names = (await this.#objects.names(prefix)).filter((name) => !name.startsWith('.'));
    // S3 orders `a-b` before `a/`; folders are sorted as if their names had no slash.
    const plain = (name: string): string => name.replace(/\/$/, '');
    for (const name of names.toSorted((a, b) => (plain(a) < plain(b) ? -1 : 1))) yield `${prefix}/${name}`;
  }

  describe(prefix: string): AsyncIterable<StoredObject> {
    return this.#objects.describe(prefix);
  }

  /** None: a rule of the bucket removes the parts of uploads that nobody completed. */
  async *unfinished(): AsyncIterable<StoredObject> {}

  removeUnchanged(object: StoredObject): Promise<boolean> {
    return this.#objects.removeUnchanged(object);
  }

  async openJournal(prefix: string): Promise<JournalSegments> {
    const spool = await this.#spool();
    if (spool !== null) return openS3Journal(this.#objects, spool, this.#settings.uploads, checkKey(prefix));
    const rule = `a journal in ${this.uri} needs a local folder to be kept in until it is uploaded`;
    throw badConfig(`${rule}; open the store with { spoolFolder }`);
  }

  async removeFolder(prefix: string): Promise<void> {
    await (await this.#spool())?.remove(checkKey(prefix));
    await this.#objects.removeFolder(prefix);
  }

  async close(): Promise<void> {
    await this.#knownSpool?.settle(CLOSE_WITHIN_MS);
  }

  /** Separate for each store: a host may work for several. */
  async #spool(): Promise<Spool | null> {
    const { spoolFolder } = this.#settings;
    if (spoolFolder === null) return null;
    const folder = join(spoolFolder, await this.id());
    this.#knownSpool ??= new Spool(folder, nodeFileSystem, this.#objects);
    return this.#knownSpool;
  }
}
