/** Looks up which answers and conversations were recorded, by their ids. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Recording } from '../../../core/contract/records.ts';
import { namedConversationKey } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { chunkOf, conversationKeyOf, firstAnswerOf, parseAnswerId, startOfChunk } from './recording-ids.ts';
import { CHUNK_LIMITS, readChunk } from './recordings.ts';

/** Chunks whose ids are remembered: some MB. */
const MOST_CHUNKS = 64;
/** Another process may still write into a chunk of this age. */
const OPEN_MS = 2 * CHUNK_LIMITS.ageMs;
const AGAIN_MS = 2000;

interface Chunk {
  /** By answer. */
  readonly conversations: Map<string, string>;
  /** There are no others: this process writes it, or it was read after its end. */
  isWhole: boolean;
  /** Records that were read. */
  read: number;
  againAtMs: number;
  reading: Promise<void>;
  /** A reading that has not begun. */
  next: Promise<void> | null;
}

/** Answer of a conversation, or a conversation as a whole. */
export interface RatedPlace {
  conversation: string;
  /** Null: the whole conversation. */
  answer: string | null;
}

export class RecordedAnswers {
  readonly #store: Store;
  readonly #run: string;
  /** The newest ones. */
  readonly #chunks = new Map<string, Chunk>();
  /** Chunk that this process writes. */
  #own: string | null = null;

  constructor(store: Store, run: string) {
    this.#store = store;
    this.#run = run;
  }

  /** An answer of this process: there is nothing to read. */
  add({ id, conversation }: Pick<Recording, 'id' | 'conversation'>): void {
    this.#own = chunkOf(id);
    (this.#chunks.get(this.#own) ?? this.#remember(this.#own, true)).conversations.set(id, conversation);
  }

  /** An answer's id of any API, a conversation's id, or a client's own name for one. Null if none was recorded. */
  async find(id: string): Promise<RatedPlace | null> {
    const answer = parseAnswerId(id);
    if (answer !== null) {
      const conversation = await this.#conversationOf(answer);
      return conversation === null ? null : { conversation, answer };
    }
    const first = firstAnswerOf(id);
    const isKnown = first === null ? await this.#isNamed(id) : (await this.#conversationOf(first)) === id;
    return isKnown ? { conversation: id, answer: null } : null;
  }

  async #conversationOf(answer: string): Promise<string | null> {
    const name = chunkOf(answer);
    const chunk = this.#chunks.get(name) ?? this.#remember(name, false);
    const known = chunk.conversations.get(answer);
    if (known !== undefined || chunk.isWhole) return known ?? null;
    await this.#readMore(name, chunk);
    return chunk.conversations.get(answer) ?? null;
  }

  /** Of all that ask meanwhile, once, and not at once again: who rates decides how often this is called. */
  #readMore(name: string, chunk: Chunk): Promise<void> {
    chunk.next ??= (async () => {
      await chunk.reading;
      await sleep(Math.max(0, chunk.againAtMs - performance.now()));
      chunk.next = null;
      const reading = this.#read(name, chunk);
      chunk.reading = reading.catch(() => undefined);
      await reading;
    })();
    return chunk.next;
  }

  async #read(name: string, chunk: Chunk): Promise<void> {
    const isEnded = Date.now() - startOfChunk(name) > OPEN_MS;
    const recordings = await readChunk(this.#store, this.#run, name, { from: chunk.read });
    for (const { id, conversation } of recordings) chunk.conversations.set(id, conversation);
    chunk.read += recordings.length;
    chunk.isWhole = isEnded;
    chunk.againAtMs = performance.now() + AGAIN_MS;
    // There is no such chunk.
    if (chunk.read === 0) this.#chunks.delete(name);
  }

  #remember(name: string, isWhole: boolean): Chunk {
    const reading = Promise.resolve();
    const chunk: Chunk = { conversations: new Map(), isWhole, read: 0, againAtMs: 0, reading, next: null };
    this.#chunks.set(name, chunk);
    for (const oldest of this.#chunks.keys()) {
      if (this.#chunks.size <= MOST_CHUNKS) break;
      if (oldest !== this.#own) this.#chunks.delete(oldest);
    }
    return chunk;
  }

  async #isNamed(name: string): Promise<boolean> {
    return (await this.#store.read(namedConversationKey(this.#run, conversationKeyOf(name)))) !== null;
  }
}
