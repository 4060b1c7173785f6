/**
 * The calls of hosted models in one attempt, journaled like those of the policy. They are no turns of the attempt, and
 * nothing of them is trained.
 */
import { hash } from 'node:crypto';
import { canonicalJson } from '../../core/text/hashes.ts';
import { wellFormedJson } from '../../core/text/json-text.ts';
import type { Metrics } from '../../core/numbers/statistics.ts';
import type { CallRequest, HostedCallRecord } from '../../store/records/groups/trajectories.ts';
import { askHosted, RequestRefused, type RefusedRequest } from '../connections/ask-model.ts';
import type { EngineConnection } from '../connections/engine-connection.ts';
import { costOf, nameMaxTokens, readUsed, type NamedModel, type Price } from '../connections/providers.ts';
import type { Answerer } from '../dialects/answer-request.ts';
import type { Completion } from '../connections/completion.ts';
import type { CallFrame } from '../recorder/answer.ts';
import type { Journal } from '../recorder/journal.ts';
import { JournaledCalls } from '../recorder/journaled-calls.ts';
import { byLength } from '../recorder/recorded-calls.ts';
import { isForAgent, type CallOptions, type Recorder } from '../recorder/recorder.ts';
import type { SendLimits } from '../connections/retry-call.ts';
import { badParameter, type AskedRequest } from '../recorder/canonical.ts';

/** A hosted model as one attempt calls it. */
export interface OpenedModel {
  /** The agent's name for it: `openai/gpt-5-mini`. */
  readonly name: string;
  readonly connection: EngineConnection;
  readonly named: NamedModel;
  /** US dollars for a million tokens; null where the agent does not say. */
  readonly price: Price | null;
  /** Role that the model plays; absent without roles. */
  readonly role?: string;
}

export class HostedCalls {
  readonly #recorder: Recorder;
  readonly #calls: JournaledCalls<Completion | RefusedRequest, Completion | RequestRefused>;
  readonly #records: HostedCallRecord[] = [];
  #isUsed = false;

  constructor(recorder: Recorder, journal: Journal, attempt: number) {
    this.#recorder = recorder;
    const { ending, rollout } = recorder;
    this.#calls = new JournaledCalls({ journal, attempt, ending, rollout, noun: 'calls of hosted models' });
  }

  open(model: OpenedModel): Answerer {
    this.#isUsed = true;
    return {
      call: (asked, options) => this.#call(model, asked, options),
      refuse: (error) => this.#recorder.refuse(error),
    };
  }

  /** In an order that does not depend on timing; null where the agent uses no hosted model. */
  records(): HostedCallRecord[] | null {
    return this.#isUsed ? this.#records.toSorted(byLength(({ promptTokens }) => promptTokens ?? 0)) : null;
  }

  /** Metrics of an attempt; none if its agent uses no hosted model. */
  metrics(): Metrics {
    if (!this.#isUsed) return {};
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
    const shown = await this.#calls.answer({
      key: keyOf(model, request, options.label ?? null),
      ...(model.role !== undefined && { role: model.role }),
      request,
      options,
      send: async (frame) => {
        const { rollout } = this.#recorder;
        const body = wellFormedJson(JSON.stringify({ model: model.named.model, ...frame.request }));
        const ask = (limits: SendLimits) => askHosted(model, body, { limits, times: rollout });
        const sent = await this.#recorder.time.send(options.signal ?? null, ask);
        return 'completion' in sent
          ? { answer: sent.completion, text: sent.text }
          : { answer: sent, text: JSON.stringify(sent) };
      },
      accept: (answer, frame) => () => {
        this.#records.push(recordOf(model, frame, answer));
        return isRefusal(answer) ? new RequestRefused(answer.refused.status, answer.refused.error) : answer;
      },
    });
    if (shown instanceof RequestRefused) throw shown;
    return shown;
  }
}

function isRefusal(answer: Completion | RefusedRequest): answer is RefusedRequest {
  // A server may add members of its own to a completion, but it always has choices.
  return !('choices' in answer);
}

/** No call of the policy has such a key. */
function keyOf({ name, role }: OpenedModel, request: CallRequest, label: string | null): string {
  return hash('sha256', canonicalJson({ hosted: name, label, role, request }));
}

/** The request for the model's server. A streamed answer is requested as a whole, and sent on in pieces. */
function requestOf({ name, named }: OpenedModel, asked: AskedRequest): CallRequest {
  const { model, stream: _stream, stream_options: _options, ...rest } = asked;
  if (model === named.model || model === name) return nameMaxTokens(named, rest) as CallRequest;
  const rule = `must be ${named.model} for a client of hosted('${name}')`;
  throw badParameter('model', model, rule, 'pass on its model, or open another hosted model');
}

function recordOf(
  { name, named, price }: OpenedModel,
  { key, occurrence, label, role, request }: CallFrame,
  answer: Completion | RefusedRequest,
): HostedCallRecord {
  const call = { model: name, key, occurrence, label, ...(role !== undefined && { role }), request };
  if (isRefusal(answer)) {
    const refusal = String(answer.refused.error.message);
    return { ...call, choices: [], refusal, promptTokens: null, completionTokens: null, usd: 0 };
  }
  const used = readUsed(answer['usage']);
  const { promptTokens, completionTokens } = used;
  const choices = answer.choices.map(({ message, finish_reason: finishReason }) => ({ message, finishReason }));
  return { ...call, choices, refusal: null, promptTokens, completionTokens, usd: costOf(named, price, used) };
}
