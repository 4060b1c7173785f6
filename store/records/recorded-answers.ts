/** Looks up which answers and conversations were recorded, by their ids. */
import { namedConversationKey } from '../layout.ts';
import type { Store } from '../store.ts';
import { chunkOf, conversationKeyOf, firstAnswerOf, parseAnswerId, startOfChunk } from './recording-ids.ts';
import { CHUNK_LIMITS, readChunk, type Recording } from './recordings.ts';

/** Chunks whose ids are remembered: some MB. */
const MOST_CHUNKS = 64;
/** Another process may still write into a chunk of this age. */
const OPEN_MS = 2 * CHUNK_LIMITS.ageMs;

/** Answer of a conversation, or a conversation as a whole. */
export interface RatedPlace {
  conversation: string;
  /** Null: the whole conversation. */
  answer: string | null;
}

export class RecordedAnswers {
  readonly #store: Store;
  readonly #run: string;
  /** Conversations by answer, by chunk; the chunk that was used last is the last one. */
  readonly #chunks = new Map<string, Map<string, string>>();

  constructor(store: Store, run: string) {
    this.#store = store;
    this.#run = run;
  }

  /** An answer of this process: there is nothing to read. */
  add({ id, conversation }: Pick<Recording, 'id' | 'conversation'>): void {
    const chunk = chunkOf(id);
    this.#remember(chunk, this.#chunks.get(chunk) ?? new Map()).set(id, conversation);
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
    const chunk = chunkOf(answer);
    const known = this.#chunks.get(chunk);
    const found = known?.get(answer) ?? null;
    if (known !== undefined && (found !== null || Date.now() - startOfChunk(chunk) > OPEN_MS)) return found;
    const recordings = await readChunk(this.#store, this.#run, chunk);
    if (recordings.length === 0) return null;
    const read = new Map(recordings.map(({ id, conversation }) => [id, conversation]));
    return this.#remember(chunk, read).get(answer) ?? null;
  }

  #remember(chunk: string, conversations: Map<string, string>): Map<string, string> {
    this.#chunks.delete(chunk);
    this.#chunks.set(chunk, conversations);
    for (const oldest of this.#chunks.keys()) {
      if (this.#chunks.size <= MOST_CHUNKS) break;
      this.#chunks.delete(oldest);
    }
    return conversations;
  }

  async #isNamed(name: string): Promise<boolean> {
    return (await this.#store.read(namedConversationKey(this.#run, conversationKeyOf(name)))) !== null;
  }
}
