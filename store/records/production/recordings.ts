/**
 * Records of `temper serve --record`: served answers with their token ids and log-probabilities, in chunks. A chunk is the
 * journal of one process: a record survives the death of the process once `append` returns, and that of the host as
 * soon as the system, or a bucket, has it (within 2 seconds or 1 MB).
 */
import { setImmediate } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';

import type { Recording } from '../../../core/contract/records.ts';
import { wellFormedJson } from '../../../core/text/json-text.ts';
import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { decodeJson, encodeJson } from '../../bytes/json.ts';
import { decodeAround, encodeRecord } from '../../bytes/journal-records.ts';
import {
  conversationFeedbackPrefix,
  feedbackPrefix,
  namedConversationKey,
  namedConversationsPrefix,
  recordingChunkKey,
  recordingChunkPrefix,
  recordingsPrefix,
} from '../../layout.ts';
import type { JournalSegments, Store } from '../../store.ts';
import { childNames } from '../children.ts';
import { parseStored, RecordingSchema } from '../file-schemas.ts';
import {
  chunkOf,
  conversationKeyOf,
  firstAnswerOf,
  isChunk,
  newAnswerId,
  newChunk,
  ownConversation,
  startOfChunk,
} from './recording-ids.ts';

export type Untrainable = NonNullable<Recording['untrainable']>;

export interface NewRecording extends Omit<Recording, 'schema' | 'id' | 'at' | 'conversation'> {
  /** Null: a new one begins. */
  conversation: string | null;
}

export interface RecordingLimits {
  /** A chunk ends when it has so many bytes … */
  bytes: number;
  /** … or is so old. */
  ageMs: number;
}

export const CHUNK_LIMITS: RecordingLimits = { bytes: 8 * 1024 ** 2, ageMs: 3_600_000 };

interface Chunk {
  name: string;
  journal: JournalSegments;
  beganAt: number;
  bytes: number;
}

export class RecordingWriter {
  readonly #store: Store;
  readonly #run: string;
  readonly #limits: RecordingLimits;
  readonly #now: () => number;
  #chunk: Promise<Chunk> | null = null;
  #last: Chunk | null = null;
  /** Conversations that are known to be named in the store. */
  readonly #named = new Set<string>();

  constructor(store: Store, run: string, limits: RecordingLimits = CHUNK_LIMITS, now: () => number = Date.now) {
    this.#store = store;
    this.#run = run;
    this.#limits = limits;
    this.#now = now;
  }

  async append({ conversation: known, ...recorded }: NewRecording): Promise<Recording> {
    // First: with a new chunk, names are written again.
    await this.#current();
    if (known !== null) await this.#name(known);
    const chunk = await this.#current();
    const id = newAnswerId(chunk.name);
    const [conversation, at] = [known ?? ownConversation(id), new Date(this.#now()).toISOString()];
    const recording: Recording = { schema: RECORD_SCHEMA, id, conversation, at, ...recorded };
    // Level 1: an answer waits for it.
    const record = encodeRecord(gzipSync(wellFormedJson(JSON.stringify(recording)), { level: 1 }));
    try {
      chunk.journal.append(record);
    } catch (error) {
      this.#end();
      throw error;
    }
    chunk.bytes += record.length;
    return recording;
  }

  async close(): Promise<void> {
    await this.#chunk?.catch(() => undefined);
    this.#end();
  }

  /** A client's own name leads to no chunk. */
  async #name(conversation: string): Promise<void> {
    const key = conversationKeyOf(conversation);
    if (firstAnswerOf(conversation) !== null || this.#named.has(key)) return;
    const file = { schema: RECORD_SCHEMA, conversation, at: new Date(this.#now()).toISOString() };
    await this.#store.replace(namedConversationKey(this.#run, key), encodeJson(file));
    this.#named.add(key);
    if (this.#named.size > MOST_NAMED) this.#named.clear();
  }

  #current(): Promise<Chunk> {
    const { bytes, ageMs } = this.#limits;
    const last = this.#last;
    if (last !== null && (last.bytes >= bytes || this.#now() - last.beganAt >= ageMs)) this.#end();
    this.#chunk ??= this.#begin();
    return this.#chunk;
  }

  async #begin(): Promise<Chunk> {
    const beganAt = this.#now();
    const name = newChunk(beganAt);
    // Written again: a name goes by its age, and must not go before its last recording.
    this.#named.clear();
    const file = { schema: RECORD_SCHEMA, at: new Date(beganAt).toISOString() };
    try {
      await this.#store.publish(recordingChunkKey(this.#run, name), encodeJson(file));
      const journal = await this.#store.openJournal(recordingChunkPrefix(this.#run, name));
      this.#last = { name, journal, beganAt, bytes: 0 };
      return this.#last;
    } catch (error) {
      this.#chunk = null;
      throw error;
    }
  }

  #end(): void {
    this.#last?.journal.close();
    [this.#chunk, this.#last] = [null, null];
  }
}

const MOST_NAMED = 10_000;

/** Chunks of all writers, oldest first. */
export async function listChunks(store: Store, run: string): Promise<string[]> {
  return (await childNames(store, recordingsPrefix(run))).filter(isChunk);
}

/** Told of damage in a chunk: how many bytes are left out. */
export type OnDamage = (chunk: string, bytes: number) => void;

const GZIP = Buffer.from([0x1f, 0x8b, 8]);
/** Records that are unpacked before anything else gets its turn. */
const READ_AT_ONCE = 16;

/** In the order in which they were written, without the first `from`. */
export async function readChunk(
  store: Store,
  run: string,
  chunk: string,
  { from = 0, onDamage }: { from?: number; onDamage?: OnDamage } = {},
): Promise<Recording[]> {
  const prefix = recordingChunkPrefix(run, chunk);
  const journal = await store.openJournal(prefix);
  journal.close();
  const onLost = (bytes: number): void => onDamage?.(chunk, bytes);
  const payloads = journal.existing.flatMap((segment) => [...decodeAround(segment, GZIP, onLost)]);
  const recordings: Recording[] = [];
  for (const payload of payloads.slice(from)) {
    recordings.push(parseStored(RecordingSchema, decodeJson(gunzipSync(payload), prefix), prefix));
    if (recordings.length % READ_AT_ONCE === 0) await setImmediate();
  }
  return recordings;
}

/** All of a run: by chunk, then in the order in which they were written. Written ones never change their order. */
export async function* readRecordings(store: Store, run: string, onDamage?: OnDamage): AsyncGenerator<Recording> {
  for (const chunk of await listChunks(store, run))
    yield* await readChunk(store, run, chunk, onDamage === undefined ? {} : { onDamage });
}

/** Null if there is none, or no longer. */
export async function findRecording(store: Store, run: string, answer: string): Promise<Recording | null> {
  const recordings = await readChunk(store, run, chunkOf(answer));
  return recordings.find(({ id }) => id === answer) ?? null;
}

/** Removes recordings, and the feedback and names that are as old. Resolves to the number of chunks that went. */
export async function removeRecordings(store: Store, run: string, beforeMs: number): Promise<number> {
  const wholeMs = beforeMs - CHUNK_LIMITS.ageMs;
  const old = (await listChunks(store, run)).filter((chunk) => startOfChunk(chunk) <= wholeMs);
  for (const chunk of old) await store.removeFolder(recordingChunkPrefix(run, chunk));
  // Not before the recordings that they are of: a chunk stays until all of it is old.
  await removeFeedback(store, run, wholeMs);
  for await (const name of store.describe(namedConversationsPrefix(run)))
    if (name.modifiedAtMs < wholeMs) await store.removeUnchanged(name);
  return old.length;
}

/** Whole conversations: a gap in their numbers would be filled again. */
async function removeFeedback(store: Store, run: string, beforeMs: number): Promise<void> {
  const newest = new Map<string, number>();
  for await (const { key, modifiedAtMs } of store.describe(feedbackPrefix(run))) {
    const conversation = key.slice(feedbackPrefix(run).length + 1).split('/')[0]!;
    newest.set(conversation, Math.max(modifiedAtMs, newest.get(conversation) ?? 0));
  }
  for (const [conversation, modifiedAtMs] of newest)
    if (modifiedAtMs < beforeMs) await store.removeFolder(conversationFeedbackPrefix(run, conversation));
}
