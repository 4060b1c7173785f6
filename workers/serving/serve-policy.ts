/** A policy behind HTTP: the front before an engine of its own, in every dialect. */
import { answerRequest, type ModelReply, type ModelRequest } from '../../play/dialects/answer-request.ts';
import type { Memory } from '../../play/dialects/dialect.ts';
import type { Completion } from '../../play/recorder/answer.ts';
import { AnsweredCalls } from '../../play/recorder/canonical.ts';
import { openFront, type Front, type FrontOptions } from './front.ts';
import { PolicyAnswerer, type ServedPolicy } from './policy-answerer.ts';
import type { ServedEngine } from './served-engine.ts';

export type PolicyFrontOptions = Omit<FrontOptions, 'models' | 'answer'> & {
  readonly policy: ServedPolicy;
  /** Null while there is none yet. */
  readonly engine: () => Pick<ServedEngine, 'connection'> | null;
};

export function openPolicyFront({ policy, engine, ...options }: PolicyFrontOptions): Promise<Front> {
  const memory = new RecentItems();
  const answered = new RecentCalls();
  const answer = async (request: ModelRequest): Promise<ModelReply> => {
    const answerer = new PolicyAnswerer(policy, engine()?.connection() ?? null, answered);
    const reply = await answerRequest(request, answerer, { memory });
    // Attempts are told 400, whatever it was; a client of a server may try again after 429 and 503.
    return 'json' in reply && answerer.told !== null ? { ...reply, ...answerer.told } : reply;
  };
  return openFront({ ...options, models: policy.names, answer });
}

/** What a server for ever remembers of its answers: the newest ones. */
const KEPT = 500;

class RecentItems implements Memory {
  readonly #items = new Map<string, readonly object[]>();

  get(id: string): readonly object[] | undefined {
    return this.#items.get(id);
  }

  set(id: string, items: readonly object[]): void {
    this.#items.delete(id);
    this.#items.set(id, items);
    const [oldest] = this.#items.keys();
    if (this.#items.size > KEPT && oldest !== undefined) this.#items.delete(oldest);
  }
}

class RecentCalls extends AnsweredCalls {
  #newer = new AnsweredCalls();
  #older = new AnsweredCalls();
  #kept = 0;

  override keep(completion: Completion): void {
    if (this.#kept >= KEPT) [this.#older, this.#newer, this.#kept] = [this.#newer, new AnsweredCalls(), 0];
    this.#newer.keep(completion);
    this.#kept += 1;
  }

  override get(id: unknown): ReturnType<AnsweredCalls['get']> {
    return this.#newer.get(id) ?? this.#older.get(id);
  }
}
