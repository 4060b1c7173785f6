/** Serves a policy over HTTP with a separate engine, in every dialect. */
import { DEADLINE_HEADER } from '../../core/contract/wire-constants.ts';
import { answerRequest, type ModelReply, type ModelRequest } from '../../play/dialects/answer-request.ts';
import type { KeyedServer } from '../../play/transports/keyed-server.ts';
import { openServingHttp, type ServingOptions } from './serving-http.ts';
import { PolicyAnswerer, type ServedPolicy } from './policy-answerer.ts';
import { CONVERSATION_HEADER, type AnswerRecorder } from './recording/answer-recorder.ts';
import type { ServedEngine } from './served-engine.ts';
import type { Kept, Memory } from '../../play/dialects/dialect.ts';
import type { Completion } from '../../play/connections/completion.ts';
import { AnsweredCalls } from '../../play/recorder/canonical.ts';

/** Headers of every answer: which checkpoint made it. */
const POLICY_HEADER = 'x-temper-policy';
const ADAPTER_HEADER = 'x-temper-adapter';

export type PolicyServingOptions = Omit<ServingOptions, 'models' | 'answer' | 'kept'> & {
  /** Names that `/v1/models` lists. */
  readonly models: readonly string[];
  /** Policy for a request that comes now; a request in flight keeps its own. */
  readonly policy: () => ServedPolicy;
  /** Null while there is none yet. */
  readonly engine: () => Pick<ServedEngine, 'connection'> | null;
  readonly recorder?: AnswerRecorder;
};

export function servePolicy({ policy, engine, recorder, ...options }: PolicyServingOptions): Promise<KeyedServer> {
  const memory = new KeptAnswers();
  const answered = new RecentCalls();
  const answer = async (request: ModelRequest): Promise<ModelReply> => {
    const asked = policy();
    const answerer = new PolicyAnswerer({
      policy: asked,
      connection: engine()?.connection() ?? null,
      answered,
      deadline: request.headers.get(DEADLINE_HEADER),
      recorder: recorder ?? null,
      place: { api: request.path.replace(/^.*\/v1\//, ''), named: request.headers.get(CONVERSATION_HEADER) },
    });
    const reply = await answerRequest(request, answerer, { memory });
    // Attempts always get 400; a client of a server may retry after 429 and 503.
    if ('json' in reply && answerer.refusal !== null) return { ...reply, ...answerer.refusal };
    const { conversation } = answerer;
    const made = { [POLICY_HEADER]: asked.name, [ADAPTER_HEADER]: asked.adapterSha256 };
    const recorded = conversation === null ? {} : { [CONVERSATION_HEADER]: conversation };
    return { ...reply, headers: { ...reply.headers, ...(reply.status === 200 ? { ...made, ...recorded } : {}) } };
  };
  return openServingHttp({ ...options, kept: memory, answer });
}

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

/** The newest answers of `temper serve`, so that later requests can refer to them. */
class RecentCalls extends AnsweredCalls {
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
