/**
 * The model activities of one attempt, answered through its recorder. Each is in the journal before it is asked, because a
 * workflow that is taken up again does not repeat the calls that it was answered: they are repeated here, in their order.
 */
import type { Memory, ActivityDialect } from '../dialects/dialect.ts';
import type { Answerer } from '../dialects/answer-request.ts';
import type { ActivityCall } from './workflow-attempt.ts';
import { aiSdk } from '../dialects/ai-sdk.ts';
import { openaiAgents, openaiAgentsStream } from '../dialects/openai-agents.ts';

export interface CallJournal {
  recall(name: string): unknown;
  record(name: string, value: unknown): void;
}

export class ActivityCalls {
  readonly #answerer: Answerer;
  readonly #journal: CallJournal;
  /** The workflow whose calls these are: another one of the same attempt begins anew. */
  readonly #workflow: string;
  readonly #memory: Memory = new Map();
  readonly #asked = new Map<string, Promise<object>>();
  /** Settled once the calls of earlier tries are repeated. */
  readonly restored: Promise<void>;
  #count = 0;

  constructor(answerer: Answerer, journal: CallJournal, workflow: string) {
    this.#answerer = answerer;
    this.#journal = journal;
    this.#workflow = workflow;
    this.restored = this.#restore();
  }

  /** A repeated activity is the same call. */
  async answer(call: ActivityCall): Promise<object> {
    await this.restored;
    const asked = this.#asked.get(call.id);
    if (asked !== undefined) return asked;
    this.#journal.record(this.#nameOf(this.#count), call);
    this.#count += 1;
    return this.#ask(call);
  }

  /** One after the other: a later request may refer to an earlier answer. */
  async #restore(): Promise<void> {
    for (;;) {
      const call = this.#journal.recall(this.#nameOf(this.#count)) as ActivityCall | undefined;
      if (call === undefined) return;
      this.#count += 1;
      await this.#ask(call).catch(() => undefined);
    }
  }

  /** Synchronous until the call is numbered: the order of identical calls decides which is which. */
  #ask(call: ActivityCall): Promise<object> {
    const asking = this.#call(call);
    this.#asked.set(call.id, asking);
    return asking;
  }

  async #call({ type, input }: ActivityCall): Promise<object> {
    const dialect = ACTIVITY_DIALECTS[type]!;
    const call = await this.#parse(() => dialect.parse(JSON.stringify(input), this.#memory));
    const { boundsTokens = false } = call;
    const completion = await this.#answerer.call(call.asked, { boundsTokens });
    dialect.keep?.(completion, call, this.#memory);
    return dialect.write(completion, call);
  }

  #parse<T>(parse: () => T): T | Promise<never> {
    try {
      return parse();
    } catch (error) {
      return this.#answerer.refuse(error).then((refused) => Promise.reject(refused));
    }
  }

  #nameOf(index: number): string {
    return `${this.#workflow} call ${index}`;
  }
}

/** Model activities by their types, as SDKs on Temporal name them. Their first argument is the request. */
export const ACTIVITY_DIALECTS: Readonly<Record<string, ActivityDialect>> = {
  invokeModelActivity: openaiAgents,
  invokeModelStreamActivity: openaiAgentsStream,
  invokeModel: aiSdk,
  // It tells a listener what is sampled, and the workflow the whole.
  invokeModelStreaming: aiSdk,
};
