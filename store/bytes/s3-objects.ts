/** Objects of one bucket under one prefix, by the store's keys. Every refusal is typed; nothing waits forever. */
import { setTimeout as sleep } from 'node:timers/promises';

import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  paginateListObjectsV2,
  PutObjectCommand,
  type HeadObjectCommandOutput,
  type ListObjectsV2CommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import pLimit from 'p-limit';

import { TemperError } from '../../core/contract/failures.ts';
import { KEPT_UNNAMED_MS } from '../../core/contract/wire-constants.ts';
import type { StoredObject } from '../store.ts';
import { checkKey } from './keys.ts';
import { asS3Failure, isChecksumMismatch, isContended, isTaken, isUnexplained, type S3Place } from './s3-failures.ts';

export interface S3Bucket {
  client: S3Client;
  bucket: string;
  /** Empty, or keys between slashes without one at its end. */
  prefix: string;
  place: S3Place;
  /** Larger objects go up in parts of this size. */
  partBytes: number;
}

/** Tries for a body that broke off, and for a key that is being written. */
const TRIES = 4;
const PAUSE_MS = 200;
/** More would wait for a connection, and the SDK counts that wait as the server's. */
const PARALLEL = 32;

export class S3Objects {
  readonly place: S3Place;
  readonly #target: S3Bucket;
  readonly #limit = pLimit(PARALLEL);
  #hasAnswered = false;

  constructor(target: S3Bucket) {
    this.#target = target;
    this.place = target.place;
  }

  /** Null if there is no such object. */
  get(key: string): Promise<Uint8Array | null> {
    return this.#typed(() => orNull(this.#getWhole(key), 'NoSuchKey'));
  }

  /** Null if there is no such object. */
  size(key: string): Promise<number | null> {
    return this.#typed(() => this.#sizeOf(key));
  }

  /**
   * Whether an object has this length and is too new to be removed as garbage. Also false if the server does not say
   * why it refuses: the write that follows gets its reason.
   */
  async has(key: string, bytes: number): Promise<boolean> {
    const isThere = await this.#typed(async () => {
      try {
        const head = await this.#head(key);
        return head && head.ContentLength === bytes && Date.now() - modifiedAtMs(head) < KEPT_UNNAMED_MS / 2;
      } catch (error) {
        if (isUnexplained(error)) return null;
        throw error;
      }
    });
    return isThere ?? false;
  }

  put(key: string, bytes: Uint8Array): Promise<void> {
    const { client, partBytes } = this.#target;
    return this.#typed(async () => {
      const object = this.#object(key);
      if (bytes.length > partBytes) await uploadInParts(client, object, bytes, partBytes);
      else await client.send(new PutObjectCommand({ ...object, Body: bytes }));
    });
  }

  /** False if the key is taken, perhaps by this very call: its answer may have been lost, and the SDK asks again. */
  putNew(key: string, bytes: Uint8Array): Promise<boolean> {
    return this.#typed(async () => {
      const command = new PutObjectCommand({ ...this.#object(key), Body: bytes, IfNoneMatch: '*' });
      try {
        await repeat(isContended, () => this.#target.client.send(command));
        return true;
      } catch (error) {
        if (isTaken(error)) return false;
        throw error;
      }
    });
  }

  /** Names directly under a folder, unordered, folders with a `/` at their end. */
  async names(folder: string): Promise<string[]> {
    const prefix = `${this.#object(folder).Key}/`;
    const found: string[] = [];
    for await (const { CommonPrefixes = [], Contents = [] } of this.#pages(prefix, '/')) {
      const keys = [...CommonPrefixes.map(({ Prefix }) => Prefix), ...Contents.map(({ Key }) => Key)];
      for (const key of keys) if (key !== undefined && key !== prefix) found.push(key.slice(prefix.length));
    }
    return found;
  }

  remove(key: string): Promise<void> {
    return this.#typed(async () => void (await this.#target.client.send(new DeleteObjectCommand(this.#object(key)))));
  }

  async *describe(folder: string): AsyncIterable<StoredObject> {
    const { prefix } = this.#target;
    const from = prefix === '' ? 0 : prefix.length + 1;
    for await (const { Contents = [] } of this.#pages(`${this.#object(folder).Key}/`))
      for (const object of Contents)
        if (object.Key !== undefined)
          yield { key: object.Key.slice(from), bytes: object.Size ?? 0, modifiedAtMs: modifiedAtMs(object) };
  }

  /** False if it is not there, or was written since then. */
  removeUnchanged({ key, modifiedAtMs: described }: StoredObject): Promise<boolean> {
    return this.#typed(async () => {
      const head = await this.#head(key);
      if (head === null || isLater(modifiedAtMs(head), described)) return false;
      await this.#target.client.send(new DeleteObjectCommand(this.#object(key)));
      return true;
    });
  }

  async removeFolder(folder: string): Promise<void> {
    const { client, bucket } = this.#target;
    for await (const { Contents = [] } of this.#pages(`${this.#object(folder).Key}/`)) {
      const keys = Contents.map(({ Key }) => ({ Key }));
      if (keys.length === 0) continue;
      const command = new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects: keys, Quiet: true } });
      const { Errors: [refused] = [] } = await this.#typed(() => client.send(command));
      if (refused === undefined) continue;
      throw asS3Failure(Object.assign(new Error(refused.Message), { name: refused.Code ?? 'Error' }), this.place);
    }
  }

  async #sizeOf(key: string): Promise<number | null> {
    return (await this.#head(key))?.ContentLength ?? null;
  }

  #head(key: string): Promise<HeadObjectCommandOutput | null> {
    return orNull(this.#target.client.send(new HeadObjectCommand(this.#object(key))), 'NotFound');
  }

  #object(key: string): { Bucket: string; Key: string } {
    const { bucket, prefix } = this.#target;
    return { Bucket: bucket, Key: prefix === '' ? checkKey(key) : `${prefix}/${checkKey(key)}` };
  }

  /** A thousand keys each. */
  async *#pages(prefix: string, delimiter?: string): AsyncIterable<ListObjectsV2CommandOutput> {
    const { client, bucket } = this.#target;
    const input = { Bucket: bucket, Prefix: prefix, ...(delimiter === undefined ? {} : { Delimiter: delimiter }) };
    try {
      yield* paginateListObjectsV2({ client }, input);
      this.#hasAnswered = true;
    } catch (error) {
      throw asS3Failure(error, this.place, this.#hasAnswered);
    }
  }

  /** The SDK repeats a request, but not the reading of an answer that broke off. */
  async #getWhole(key: string): Promise<Uint8Array> {
    const object = this.#object(key);
    try {
      return await repeat(isBroken, async () => {
        const { Body } = await this.#target.client.send(new GetObjectCommand(object));
        return reading(() => Body?.transformToByteArray() ?? Promise.resolve(new Uint8Array()));
      });
    } catch (error) {
      const cause = error instanceof BrokenBody ? error.cause : error;
      if (!isChecksumMismatch(cause)) throw cause;
      const what = `${key} in ${this.place.uri} does not have the checksum that it was stored with`;
      throw new TemperError('StoreCorrupt', `${what}; restore it from a copy`, { cause });
    }
  }

  async #typed<T>(ask: () => Promise<T>): Promise<T> {
    try {
      const answer = await this.#limit(ask);
      // An answer to HEAD hides a refusal: not found, or without a reason.
      if (answer !== null) this.#hasAnswered = true;
      return answer;
    } catch (error) {
      throw asS3Failure(error, this.place, this.#hasAnswered);
    }
  }
}

/** A missing time counts as now. */
function modifiedAtMs({ LastModified }: { LastModified?: Date | undefined }): number {
  return LastModified?.getTime() ?? Infinity;
}

/** Listings say it to the millisecond, answers about one object to the second. */
function isLater(foundMs: number, describedMs: number): boolean {
  return foundMs >= Math.floor(describedMs / 1000 + 1) * 1000;
}

class BrokenBody extends Error {}

const isBroken = (error: unknown): boolean => error instanceof BrokenBody;

async function reading<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    throw new BrokenBody('the response body ended early', { cause });
  }
}

/** Asks a few times more, after a pause, while the error is of this kind. */
export async function repeat<T>(again: (error: unknown) => boolean, ask: () => Promise<T>): Promise<T> {
  for (let left = TRIES - 1; ; left--) {
    try {
      return await ask();
    } catch (error) {
      if (left === 0 || !again(error)) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** An answer to HEAD has no body that could say what is missing: key or bucket. */
async function orNull<T>(asking: Promise<T>, missing: 'NoSuchKey' | 'NotFound'): Promise<T | null> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof Error && error.name === missing) return null;
    throw error;
  }
}

/** A large object: it is there once all of its parts are, and not before. */
async function uploadInParts(
  client: S3Client,
  object: { Bucket: string; Key: string },
  bytes: Uint8Array,
  partBytes: number,
): Promise<void> {
  const params = { ...object, Body: bytes, ChecksumAlgorithm: 'CRC32' as const };
  const upload = new Upload({ client, params, partSize: partBytes, leavePartsOnError: true });
  try {
    await upload.done();
  } catch (error) {
    // The library's own abort would hide the failure behind its own, for which there may be no permission.
    const { uploadId: UploadId } = upload;
    if (UploadId !== undefined)
      await client.send(new AbortMultipartUploadCommand({ ...object, UploadId })).catch(() => undefined);
    throw error;
  }
}
