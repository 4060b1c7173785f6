/** The store: everything heavy of a run, behind few methods. Keys are relative, `/` between names (`store/layout.ts`). */
import type { BlobRef } from '../core/contract/contract.ts';

export interface Store {
  readonly uri: string;
  /** A random name of this store, made once; task queues carry it. */
  id(): Promise<string>;
  /** Throws StoreUnavailable, with the folder and a remedy, where nothing can be written. */
  checkWritable(): Promise<void>;
  putBlob(bytes: Uint8Array): Promise<BlobRef>;
  /** Verified by length and hash: other bytes, or none, are StoreCorrupt. */
  getBlob(ref: BlobRef): Promise<Uint8Array>;
  /** How long a blob is, without reading it; null if it is missing. */
  blobBytes(ref: BlobRef): Promise<number | null>;
  /** Drops a blob, if there is one: for what no manifest needs any more (`store/records/retention/prune.ts`), and for a corrupt one before it is put again. */
  removeBlob(ref: BlobRef): Promise<void>;
  /** Write-once: a second writer gets the winner's bytes and `created: false`. */
  publish(key: string, bytes: Uint8Array): Promise<Published>;
  read(key: string): Promise<Uint8Array | null>;
  /** For what is displayed, renewed or configured: the last writer wins. */
  replace(key: string, bytes: Uint8Array): Promise<void>;
  /** The keys directly under a folder, in order of their names, folders with a `/` at their end; none where it does not exist. */
  list(prefix: string): AsyncIterable<string>;
  /** All objects under a folder, however deep, in any order. */
  describe(prefix: string): AsyncIterable<StoredObject>;
  /** Unfinished writes of killed writers, and those in progress, as far as the store shows them; never read. */
  unfinished(): AsyncIterable<StoredObject>;
  /** Drops an object (`store/records/retention/garbage.ts`), unless it was written since it was described: then false. */
  removeUnchanged(object: StoredObject): Promise<boolean>;
  openJournal(prefix: string): Promise<JournalSegments>;
  /** Removes all under a prefix: journals of committed steps, views of pruned checkpoints; never hashed objects. */
  removeFolder(prefix: string): Promise<void>;
  /** Before the process ends: waits a moment for journals that are still on their way. */
  close(): Promise<void>;
}

export interface Published {
  created: boolean;
  bytes: Uint8Array;
}

/** For what nothing needs any more: how large an object is, and since when it is as it is. */
export interface StoredObject {
  /** Also the name of an unfinished write, which no key has. */
  key: string;
  bytes: number;
  /** Time of the disk or the server. An old blob that is written again counts as new. */
  modifiedAtMs: number;
}

/** Append-only files of one journal: what earlier writers left, and a segment of one's own, made at the first append. */
export interface JournalSegments {
  /** Bytes of the segments that existed at opening, lowest number first. */
  readonly existing: readonly Uint8Array[];
  /** Returns once the record survives the death of this process. After a failure every further append fails. */
  append(record: Uint8Array): void;
  close(): void;
}
