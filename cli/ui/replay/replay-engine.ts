/** The engine of a replay: recorded answers for the calls before the turn, and another model from there on. */
import { CALL_HEADER } from '../../../core/wire-constants.ts';
import { canonicalJson } from '../../../core/hashes.ts';
import { connectEngine, type EngineConnection, type HttpAnswer } from '../../../play/connections/engine-connection.ts';
import { hostedAddress, nameMaxTokens, type HostedModel } from '../../../play/connections/providers.ts';
import { describeDifference, differencesOf } from '../../../play/replay/difference.ts';
import { checkPolicy, parseCompletion, type Completion } from '../../../play/recorder/answer.ts';
import { callName } from '../../../play/recorder/recorded-calls.ts';
import type { Recorder } from '../../../play/recorder/recorder.ts';
import type { CallRecord, CallRequest, HostedCallRecord } from '../../../store/records/trajectories.ts';

/** The model that answers the new calls. */
export interface NewAnswers {
  readonly connection: EngineConnection;
  /** Changes a request for the model's server. */
  readonly rewrite: (body: CallRequest) => object;
  /** Throws if another policy answered. */
  readonly check: (completion: Completion) => void;
}

export class ReplayEngine implements EngineConnection {
  readonly url: string;
  readonly keyVariable: string | null;
  readonly #before: ReadonlyMap<string, readonly CallRecord[]>;
  /** Names of calls that the attempt made from the turn on. */
  readonly #after: ReadonlySet<string>;
  readonly #new: NewAnswers;
  readonly #asked = new Set<string>();
  #difference: string | null = null;
  #recorder: Recorder | null = null;

  constructor(calls: readonly CallRecord[], fromCall: number, answers: NewAnswers) {
    this.#before = byName(calls.slice(0, fromCall));
    this.#after = new Set(calls.slice(fromCall).map(callName));
    this.#new = answers;
    this.url = answers.connection.url;
    this.keyVariable = answers.connection.keyVariable;
  }

  /** Why it is no replay: the agent asked something else than was recorded, or less; null if all is well. */
  get difference(): string | null {
    if (this.#difference !== null) return this.#difference;
    const left = this.#before.size - this.#asked.size;
    return left === 0
      ? null
      : `it did not ask again for ${left} of the ${this.#before.size} recorded answers before the turn`;
  }

  attach(recorder: Recorder): void {
    this.#recorder = recorder;
  }

  /** The recorded choices of a call that was answered from the record. */
  recorded(name: string): readonly CallRecord[] | null {
    return this.#before.get(name) ?? null;
  }

  async post(body: string, options: Parameters<EngineConnection['post']>[1]): Promise<HttpAnswer> {
    const name = (options.headers[CALL_HEADER] ?? '').split('/').slice(-2).join('/');
    const recorded = this.#before.get(name);
    if (recorded !== undefined) {
      this.#asked.add(name);
      return { status: 200, retryAfter: null, text: JSON.stringify(completionOf(recorded)) };
    }
    const request = JSON.parse(body) as CallRequest;
    if (this.#asked.size < this.#before.size && !this.#after.has(name)) throw this.#differs(request);
    const answer = await this.#new.connection.post(JSON.stringify(this.#new.rewrite(request)), options);
    const completion = answer.status === 200 ? parseCompletion(answer.text) : null;
    if (completion !== null) this.#new.check(completion);
    return answer;
  }

  close(): Promise<void> {
    return this.#new.connection.close();
  }

  #differs({ model: _model, seed: _seed, logprobs: _logprobs, return_token_ids: _ids, ...asked }: CallRequest): Error {
    const [expected] = [...this.#before].flatMap(([name, calls]) => (this.#asked.has(name) ? [] : calls));
    const { seed: _own, ...recorded } = expected!.request;
    const [first] = differencesOf(recorded, asked);
    const where = first === undefined ? 'another label' : describeDifference(first);
    this.#difference ??= `call ${this.#asked.size + 1} is not the recorded one: ${where}`;
    this.#recorder?.ending.failAs('the agent asks something else than was recorded');
    return new Error('the record has no answer');
  }
}

function byName(calls: readonly CallRecord[]): ReadonlyMap<string, readonly CallRecord[]> {
  const found = new Map<string, CallRecord[]>();
  for (const call of calls) found.set(callName(call), [...(found.get(callName(call)) ?? []), call]);
  return found;
}

/** The engine's answer as far as the record has it. */
function completionOf(records: readonly CallRecord[]): Completion {
  const [{ promptTokenIds, adapterSha256 }] = records as readonly [CallRecord];
  const sampled = records.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
  const usage = {
    prompt_tokens: promptTokenIds.length,
    completion_tokens: sampled,
    total_tokens: promptTokenIds.length + sampled,
  };
  return {
    object: 'chat.completion',
    created: 0,
    prompt_token_ids: promptTokenIds,
    adapter_sha256: adapterSha256,
    usage,
    choices: records.map(({ message, finishReason, tokenIds, logprobs }, index) => ({
      index,
      message,
      finish_reason: finishReason,
      token_ids: tokenIds,
      logprobs: { content: logprobs.map((logprob) => ({ logprob })) },
    })),
  };
}

export function answersOfEngine(
  address: Parameters<typeof connectEngine>[0],
  policy: { readonly model: string; readonly adapterSha256: string | null },
): NewAnswers {
  return {
    connection: connectEngine(address),
    rewrite: (body) => body,
    check: (completion) => checkPolicy(completion, policy),
  };
}

/** Parameters that only Temper's engine understands, or that the recorder filled in for it. */
const OF_ENGINE = new Set(
  'seed logprobs return_token_ids chat_template_kwargs chat_template_sha256 separate_reasoning stop_token_ids'.split(
    ' ',
  ),
);

/** `temperature`: the run's. A hosted model gets its own instead, as in `temper eval`. */
export function answersOfHosted(hosted: HostedModel, temperature: number): NewAnswers {
  return {
    connection: connectEngine(hostedAddress(hosted)),
    rewrite: (body) => {
      const kept = Object.entries(body).filter(
        ([name, value]) => !OF_ENGINE.has(name) && !(name === 'temperature' && value === temperature),
      );
      return { ...nameMaxTokens(hosted, Object.fromEntries(kept)), model: hosted.model };
    },
    check: () => undefined,
  };
}

/** Calls of hosted models that the agent makes itself: a request that was answered before gets that answer again. */
export class RecordedHosted {
  readonly #answers = new Map<string, HostedCallRecord[]>();

  constructor(calls: readonly HostedCallRecord[]) {
    for (const call of calls) {
      const name = nameOf(call.model, call.request);
      this.#answers.set(name, [...(this.#answers.get(name) ?? []), call]);
    }
  }

  over(model: string, connection: EngineConnection): EngineConnection {
    return {
      ...connection,
      post: (body, options) => {
        const { model: _model, ...request } = JSON.parse(body) as CallRequest;
        const recorded = this.#answers.get(nameOf(model, request))?.shift();
        return recorded === undefined || recorded.refusal !== null
          ? connection.post(body, options)
          : Promise.resolve({ status: 200, retryAfter: null, text: JSON.stringify(hostedCompletion(recorded)) });
      },
    };
  }
}

function nameOf(model: string, request: CallRequest): string {
  return canonicalJson([model, request]);
}

function hostedCompletion({ choices, promptTokens, completionTokens }: HostedCallRecord): object {
  return {
    object: 'chat.completion',
    created: 0,
    choices: choices.map(({ message, finishReason }, index) => ({ index, message, finish_reason: finishReason })),
    usage: { prompt_tokens: promptTokens, completion_tokens: completionTokens },
  };
}
