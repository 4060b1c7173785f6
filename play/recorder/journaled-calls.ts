/**
 * The calls of one attempt, to the policy or to hosted models. Each: key and occurrence → journal, or else the server →
 * journal → agent. A call that its client repeats is answered as it was.
 */
import type { RolloutConfig } from '../../core/contract/contract.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';
import type { CallFrame } from './answer.ts';
import { SYSTEM_CLOCK, type Clock } from '../connections/clock.ts';
import type { Ending } from './ending.ts';
import type { Journal } from './journal.ts';
import { callName } from './recorded-calls.ts';

interface JournaledCallsOptions {
  journal: Journal;
  attempt: number;
  ending: Ending;
  rollout: Pick<RolloutConfig, 'maxCallsPerAttempt'>;
  /** Names the calls in the error of one too many. */
  noun: string;
  /** Default: the system's clock. */
  clock?: Clock;
}

/** When a call was asked and answered, outages included, in milliseconds since 1970. */
export type CallTime = readonly [askedAt: number, answeredAt: number];

export interface RepeatOptions {
  /** Tells identical calls made in parallel apart. */
  label?: string | null;
  /** Aborted when the agent gives the call up. */
  signal?: AbortSignal | null;
  /** The client sends again what it had asked before: the call that was given up, or else the last one. */
  isRepeated?: boolean;
}

export interface JournaledCall<Answer, Shown> {
  readonly key: string;
  /** Role that calls; absent without roles. */
  readonly role?: string;
  readonly request: CallRequest;
  readonly options: RepeatOptions;
  /** Called before a new call is sent or looked up. */
  readonly begin?: (frame: CallFrame) => void;
  /** `text` is what the journal keeps: the answer as JSON. */
  readonly send: (frame: CallFrame) => Promise<{ answer: Answer; text: string }>;
  /** Checks an answer. The returned function keeps it, and returns what the agent sees. */
  readonly accept: (answer: Answer, frame: CallFrame) => () => Shown;
}

export class JournaledCalls<Answer, Shown> {
  /** Names of the calls, in the order in which the agent asked. */
  readonly asked: string[] = [];
  /** Those of the calls that this process sent, by name: of an answer from the journal, the time is not known. */
  readonly times = new Map<string, CallTime>();
  readonly #options: JournaledCallsOptions;
  readonly #occurrences = new Map<string, number>();
  /** Calls that were given up before they were answered, by key. */
  readonly #givenUp = new Map<string, CallFrame[]>();
  /** Answers that the agent saw, by the name of the call. */
  readonly #shown = new Map<string, Shown>();

  constructor(options: JournaledCallsOptions) {
    this.#options = options;
  }

  async answer(call: JournaledCall<Answer, Shown>): Promise<Shown> {
    const { journal, attempt, ending } = this.#options;
    const frame = this.#number(call);
    const name = callName(frame);
    const earlier = this.#shown.get(name);
    if (earlier !== undefined) return earlier;
    const journaled = journal.claim(attempt, frame.key, frame.occurrence) as Answer | null;
    const { answer, text } = journaled === null ? await this.#send(call, frame) : { answer: journaled, text: null };
    // A client that asked again before it had given up the first request is answered once.
    const meanwhile = this.#shown.get(name);
    if (meanwhile !== undefined) return meanwhile;
    const keep = call.accept(answer, frame);
    if (text !== null) journal.recordCall(attempt, frame.key, frame.occurrence, text);
    const shown = keep();
    this.#shown.set(name, shown);
    // An answer after the end is in the journal, for a repetition, and goes no further.
    ending.check();
    return shown;
  }

  /** Must stay synchronous: identical calls are told apart by the order in which the agent asks. */
  #number({ key, role, request, options, begin }: JournaledCall<Answer, Shown>): CallFrame {
    const { label = null, isRepeated = false } = options;
    const named = { label, ...(role !== undefined && { role }) };
    const occurrence = this.#occurrences.get(key) ?? 0;
    if (isRepeated && occurrence > 0)
      return this.#givenUp.get(key)?.shift() ?? { key, occurrence: occurrence - 1, ...named, request };
    const frame = { key, occurrence, ...named, request };
    this.#occurrences.set(key, occurrence + 1);
    this.asked.push(callName(frame));
    const { ending, rollout, noun } = this.#options;
    const { maxCallsPerAttempt: most } = rollout;
    if (this.asked.length > most)
      ending.failAs(`an attempt may make maxCallsPerAttempt ${most} ${noun}, it asked for one more`);
    ending.check();
    begin?.(frame);
    return frame;
  }

  /** The client may ask again for what it gave up. */
  async #send({ send, options }: JournaledCall<Answer, Shown>, frame: CallFrame) {
    const { clock = SYSTEM_CLOCK } = this.#options;
    const askedAt = clock.now();
    try {
      const sent = await send(frame);
      this.times.set(callName(frame), [Math.round(askedAt), Math.round(clock.now())]);
      return sent;
    } catch (error) {
      if (options.signal?.aborted === true)
        this.#givenUp.set(frame.key, [...(this.#givenUp.get(frame.key) ?? []), frame]);
      throw error;
    }
  }
}
