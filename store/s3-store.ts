/**
 * The store in a bucket. An object is there whole or not at all; write-once is `If-None-Match: *`, so that of many
 * writers the server lets one through. Keys are the file store's, under the prefix.
 */
import type { BlobRef } from '../core/contract.ts';
import { TemperError } from '../core/failures.ts';
import { blobKey, STORE_KEY } from './layout.ts';
import { createS3Client, describeEndpoint, S3_TIMEOUTS, type S3Timeouts } from './s3-client.ts';
import { S3Objects } from './s3-objects.ts';
import { hashBytes } from './sha256.ts';
import type { JournalSegments, Published, Store } from './store.ts';
import { readStoreId } from './store-id.ts';
import { verifyBlob } from './verify-blob.ts';

export interface S3Address {
  bucket: string;
  prefix: string;
}

export interface S3StoreOptions {
  /** Where journals lie until they are uploaded; without one none can be opened. */
  spoolFolder?: string;
  /** Larger objects go up in parts of this size, which S3 wants to be at least 5 MiB. */
  partBytes?: number;
  timeouts?: S3Timeouts;
}

const PART_BYTES = 16 * 1024 ** 2;

export async function openS3Store({ bucket, prefix }: S3Address, options: S3StoreOptions = {}): Promise<S3Store> {
  const { partBytes = PART_BYTES, timeouts = S3_TIMEOUTS } = options;
  const uri = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
  const client = await createS3Client(timeouts);
  const place = { uri, endpoint: await describeEndpoint(client) };
  return new S3Store(new S3Objects({ client, bucket, prefix, place, partBytes }));
}

export class S3Store implements Store {
  readonly uri: string;
  private readonly objects: S3Objects;
  private knownId: string | null = null;

  constructor(objects: S3Objects) {
    this.objects = objects;
    this.uri = objects.place.uri;
  }

  async id(): Promise<string> {
    this.knownId ??= await readStoreId(this);
    return this.knownId;
  }

  /** A server that overlooks `If-None-Match` would let two workers commit one step: it is refused here. */
  async checkWritable(): Promise<void> {
    await this.id();
    const present = await this.objects.get(STORE_KEY);
    // The same bytes: where the server does write them, nothing has changed.
    if (present === null || !(await this.objects.putNew(STORE_KEY, present))) return;
    const rule = `the server of ${this.uri} must refuse a write with If-None-Match: * to a key that is taken`;
    throw new TemperError(
      'BadConfig',
      `${rule}, but it wrote; use a server or a version that knows conditional writes`,
    );
  }

  async putBlob(bytes: Uint8Array): Promise<BlobRef> {
    const sha256 = hashBytes(bytes);
    const key = blobKey(sha256);
    if ((await this.objects.size(key)) !== bytes.length) await this.objects.put(key, bytes);
    return { key, sha256, bytes: bytes.length };
  }

  async getBlob(ref: BlobRef): Promise<Uint8Array> {
    return verifyBlob(await this.objects.get(ref.key), ref, this.uri);
  }

  /** Where an answer was lost, the winner's bytes may be one's own, with `created: false`. */
  async publish(key: string, bytes: Uint8Array): Promise<Published> {
    if (await this.objects.putNew(key, bytes)) return { created: true, bytes };
    const winner = await this.objects.get(key);
    if (winner !== null) return { created: false, bytes: winner };
    throw new TemperError('StoreUnavailable', `${key} in ${this.uri} is taken, but cannot be read; look to the server`);
  }

  read(key: string): Promise<Uint8Array | null> {
    return this.objects.get(key);
  }

  replace(key: string, bytes: Uint8Array): Promise<void> {
    return this.objects.put(key, bytes);
  }

  async *list(prefix: string): AsyncIterable<string> {
    const names = (await this.objects.names(prefix)).filter((name) => !name.startsWith('.'));
    // S3 orders `a-b` before `a/`; folders stand here as if their names had no slash.
    const plain = (name: string): string => name.replace(/\/$/, '');
    for (const name of names.toSorted((a, b) => (plain(a) < plain(b) ? -1 : 1))) yield `${prefix}/${name}`;
  }

  openJournal(): Promise<JournalSegments> {
    return Promise.reject(new TemperError('BadConfig', 'not yet'));
  }

  removeJournals(prefix: string): Promise<void> {
    return this.objects.removeFolder(prefix);
  }
}
