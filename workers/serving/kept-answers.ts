/** The newest answers of `temper serve`, so that later requests can refer to them. */
import type { Kept, Memory } from '../../play/dialects/dialect.ts';
import type { Completion } from '../../play/recorder/answer.ts';
import { AnsweredCalls } from '../../play/recorder/canonical.ts';

const MAX_KEPT = 500;
/** Length as JSON: conversations may be as long as bodies. */
const MAX_KEPT_LENGTH = 64 * 1024 ** 2;

interface Entry {
  readonly items: readonly object[];
  readonly answer: object | null;
  readonly length: number;
}

/** Skips answers that the client asks not to store. */
export class KeptAnswers implements Memory {
  readonly #entries = new Map<string, Entry>();
  #length = 0;

  get(id: string): readonly object[] | undefined {
    return this.#entries.get(id)?.items;
  }

  /** The whole answer as it was sent; null for unknown ids, and for ids of parts. */
  answer(id: string): object | null {
    return this.#entries.get(id)?.answer ?? null;
  }

  set(id: string, items: readonly object[], { answer = null, isStored = true }: Kept = {}): void {
    if (!isStored) return;
    this.#delete(id);
    const length = JSON.stringify([items, answer]).length;
    this.#entries.set(id, { items, answer, length });
    this.#length += length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MAX_KEPT && this.#length <= MAX_KEPT_LENGTH) break;
      this.#delete(oldest);
    }
  }

  /** With its parts. */
  forget(id: string): void {
    const { output = [] } = (this.answer(id) ?? {}) as { output?: readonly { id: string }[] };
    for (const part of output) this.#delete(part.id);
    this.#delete(id);
  }

  #delete(id: string): void {
    this.#length -= this.#entries.get(id)?.length ?? 0;
    this.#entries.delete(id);
  }
}

export class RecentCalls extends AnsweredCalls {
  #newer = new AnsweredCalls();
  #older = new AnsweredCalls();
  #kept = 0;

  override keep(completion: Completion): void {
    if (this.#kept >= MAX_KEPT) [this.#older, this.#newer, this.#kept] = [this.#newer, new AnsweredCalls(), 0];
    this.#newer.keep(completion);
    this.#kept += 1;
  }

  override get(id: unknown): ReturnType<AnsweredCalls['get']> {
    return this.#newer.get(id) ?? this.#older.get(id);
  }
}
