/**
 * The calls of hosted models in one attempt. As with the policy's: key and occurrence → journal, or else the model's
 * server → journal → trajectory → agent. They are no turns of the attempt, and nothing of them is trained.
 */
import { hash } from 'node:crypto';

import { canonicalJson } from '../../core/hashes.ts';
import { wellFormedJson } from '../../core/json-text.ts';
import type { Metrics } from '../../core/statistics.ts';
import type { CallRequest, HostedCallRecord } from '../../store/records/trajectories.ts';
import { costOf, nameMaxTokens, readUsed, type NamedModel, type Price } from '../connections/providers.ts';
import type { Answerer } from '../dialects/answer-request.ts';
import type { CallFrame, Completion } from '../recorder/answer.ts';
import { badParameter, type AskedRequest } from '../recorder/asked-request.ts';
import type { Journal } from '../recorder/journal.ts';
import { byLength, callName, RecordedCalls } from '../recorder/recorded-calls.ts';
import { isForAgent, type CallOptions, type Recorder } from '../recorder/recorder.ts';
import { RequestRefused } from '../recorder/send.ts';
import { askHosted, type AskedModel, type HostedRefusal } from './ask-hosted.ts';

/** A hosted model as one attempt calls it. */
export interface OpenedModel extends AskedModel {
  readonly named: NamedModel;
  /** US dollars for a million tokens; null where the agent does not say. */
  readonly price: Price | null;
}

export class HostedCalls {
  readonly #recorder: Recorder;
  readonly #journal: Journal;
  readonly #attempt: number;
  /** By the model's name. */
  readonly #numbering = new Map<string, RecordedCalls>();
  readonly #records: HostedCallRecord[] = [];
  /** What the agent was told, by the name of the call. */
  readonly #told = new Map<string, Completion | RequestRefused>();
  #count = 0;

  constructor(recorder: Recorder, journal: Journal, attempt: number) {
    this.#recorder = recorder;
    this.#journal = journal;
    this.#attempt = attempt;
  }

  open(model: OpenedModel): Answerer {
    if (!this.#numbering.has(model.name)) this.#numbering.set(model.name, new RecordedCalls(keysOf(model.name)));
    return {
      call: (asked, options) => this.#call(model, asked, options),
      refuse: (error) => this.#recorder.refuse(error),
    };
  }

  /** In an order that does not depend on timing; null where the agent uses no hosted model. */
  records(): HostedCallRecord[] | null {
    return this.#numbering.size === 0
      ? null
      : this.#records.toSorted(byLength(({ promptTokens }) => promptTokens ?? 0));
  }

  /** Of an attempt whose agent uses hosted models. */
  metrics(): Metrics {
    if (this.#numbering.size === 0) return {};
    const usd = this.#records.map((call) => call.usd);
    const isKnown = usd.every((each) => each !== null);
    const sum = usd.reduce<number>((total, each) => total + (each ?? 0), 0);
    return { hostedCalls: this.#records.length, ...(isKnown ? { hostedUsd: sum } : {}) };
  }

  async #call(model: OpenedModel, asked: AskedRequest, options: CallOptions): Promise<Completion> {
    try {
      this.#recorder.ending.check();
      return await this.#answer(model, asked, options);
    } catch (error) {
      throw isForAgent(error, options.signal ?? null) ? error : await this.#recorder.refuse(error);
    }
  }

  async #answer(model: OpenedModel, asked: AskedRequest, options: CallOptions): Promise<Completion> {
    const request = requestOf(model, asked);
    const frame = this.#number(model, request, options);
    const told = this.#told.get(callName(frame));
    if (told !== undefined) return tell(told);
    const journaled = this.#journal.claim(this.#attempt, frame.key, frame.occurrence);
    if (journaled !== null) return this.#keep(model, frame, journaled as Completion | HostedRefusal);
    const answer = await this.#send(model, frame, options.signal ?? null);
    // A client that asked again before it had given up the first request is answered once.
    const meanwhile = this.#told.get(callName(frame));
    if (meanwhile !== undefined) return tell(meanwhile);
    const text = 'completion' in answer ? answer.text : JSON.stringify(answer);
    this.#journal.recordCall(this.#attempt, frame.key, frame.occurrence, text);
    // What came after the end is in the journal, for a repetition, and goes no further.
    this.#recorder.ending.check();
    return this.#keep(model, frame, 'completion' in answer ? answer.completion : answer);
  }

  /** Must stay synchronous: the order in which the agent asks decides the occurrence. */
  #number({ name }: OpenedModel, request: CallRequest, { label = null, isRepeated = false }: CallOptions): CallFrame {
    const { frame, isNew } = this.#numbering.get(name)!.number(request, label, isRepeated);
    if (!isNew) return frame;
    this.#count += 1;
    const { ending, rollout } = this.#recorder;
    const { maxCallsPerAttempt: most } = rollout;
    if (this.#count > most)
      ending.failAs(`an attempt may make maxCallsPerAttempt ${most} calls of hosted models, it asked for one more`);
    ending.check();
    return frame;
  }

  async #send(model: OpenedModel, frame: CallFrame, signal: AbortSignal | null) {
    const { rollout } = this.#recorder;
    const body = wellFormedJson(JSON.stringify({ model: model.named.model, ...frame.request }));
    try {
      return await this.#recorder.sendInTime(signal, (limits) => askHosted(model, body, limits, rollout));
    } catch (error) {
      // The client may ask again for what it gave up.
      if (signal?.aborted === true) this.#numbering.get(model.name)!.giveUp(frame);
      throw error;
    }
  }

  #keep(model: OpenedModel, frame: CallFrame, answer: Completion | HostedRefusal): Completion {
    this.#records.push(recordOf(model, frame, answer));
    const told = isRefusal(answer) ? new RequestRefused(answer.refused.status, answer.refused.error) : answer;
    this.#told.set(callName(frame), told);
    return tell(told);
  }
}

function tell(told: Completion | RequestRefused): Completion {
  if (told instanceof RequestRefused) throw told;
  return told;
}

function isRefusal(answer: Completion | HostedRefusal): answer is HostedRefusal {
  // A server may add members of its own to a completion, but it always has choices.
  return !('choices' in answer);
}

/** No call of the policy has such a key. */
function keysOf(name: string) {
  return (request: CallRequest, label: string | null): string =>
    hash('sha256', canonicalJson({ hosted: name, label, request }));
}

/** As its server takes it; a streamed answer is asked for as a whole, and told in pieces. */
function requestOf({ name, named }: OpenedModel, asked: AskedRequest): CallRequest {
  const { model, stream: _stream, stream_options: _options, ...rest } = asked;
  if (model === named.model || model === name) return nameMaxTokens(named, rest) as CallRequest;
  const rule = `must be ${named.model} for a client of hosted('${name}')`;
  throw badParameter('model', model, rule, 'pass on its model, or open another hosted model');
}

function recordOf(
  { name, named, price }: OpenedModel,
  { key, occurrence, label, request }: CallFrame,
  answer: Completion | HostedRefusal,
): HostedCallRecord {
  const call = { model: name, key, occurrence, label, request };
  if (isRefusal(answer)) {
    const refusal = String(answer.refused.error.message);
    return { ...call, choices: [], refusal, promptTokens: null, completionTokens: null, usd: 0 };
  }
  const used = readUsed(answer['usage']);
  const { promptTokens, completionTokens } = used;
  const choices = answer.choices.map(({ message, finish_reason: finishReason }) => ({ message, finishReason }));
  return { ...call, choices, refusal: null, promptTokens, completionTokens, usd: costOf(named, price, used) };
}
