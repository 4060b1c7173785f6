/** Of a replay: the journal that answers the calls before the turn, and the model that answers from there on. */
import { CALL_HEADER } from '../../../core/contract/wire-constants.ts';
import { connectEngine, type EngineConnection, type HttpAnswer } from '../../../play/connections/engine-connection.ts';
import { hostedAddress, nameMaxTokens, type HostedModel } from '../../../play/connections/providers.ts';
import { describeDifference, differencesOf } from '../../../play/replay/difference.ts';
import { firstChoices, journalOf } from '../../../play/replay/saved-attempt.ts';
import { parseCompletion, type Completion } from '../../../play/connections/completion.ts';
import { checkPolicy } from '../../../play/recorder/answer.ts';
import { callName } from '../../../play/recorder/recorded-calls.ts';
import type { Recorder } from '../../../play/recorder/recorder.ts';
import type {
  AttemptRecord,
  CallRecord,
  CallRequest,
  HostedCallRecord,
} from '../../../store/records/groups/trajectories.ts';

/** Of the attempt's calls the first `count`; of hosted models every answer, whenever the agent asks for it again. */
export function journalBefore({ attempt, calls, hostedCalls = [] }: AttemptRecord, count: number): Uint8Array {
  const before = calls.slice(0, count);
  const choicesOf = (name: string) => before.filter((call) => callName(call) === name);
  const answered = hostedCalls.filter(({ refusal }) => refusal === null);
  return journalOf({
    attempt,
    calls: firstChoices(before).map((call) => ({ ...call, answer: completionOf(choicesOf(callName(call))) })),
    hostedCalls: answered.map((call) => ({ ...call, answer: hostedCompletion(call) })),
    once: {},
    overlap: null,
  });
}

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
  readonly #before: readonly CallRecord[];
  /** Names of calls that the attempt made from the turn on. */
  readonly #after: ReadonlySet<string>;
  readonly #new: NewAnswers;
  #difference: string | null = null;
  #recorder: Recorder | null = null;

  constructor(calls: readonly CallRecord[], fromCall: number, answers: NewAnswers) {
    this.#before = firstChoices(calls.slice(0, fromCall));
    this.#after = new Set(calls.slice(fromCall).map(callName));
    this.#new = answers;
    this.url = answers.connection.url;
    this.keyVariable = answers.connection.keyVariable;
  }

  /** Why it is no replay: the agent asked something else than was recorded, or less; null if all is well. */
  get difference(): string | null {
    const left = this.#left().length;
    if (this.#difference !== null || left === 0) return this.#difference;
    return `it did not ask again for ${left} of the ${this.#before.length} recorded answers before the turn`;
  }

  attach(recorder: Recorder): void {
    this.#recorder = recorder;
  }

  async post(body: string, options: Parameters<EngineConnection['post']>[1]): Promise<HttpAnswer> {
    const name = (options.headers[CALL_HEADER] ?? '').split('/').slice(-2).join('/');
    const request = JSON.parse(body) as CallRequest;
    const [expected] = this.#left();
    if (expected !== undefined && !this.#after.has(name)) throw this.#differs(expected, request);
    const answer = await this.#new.connection.post(JSON.stringify(this.#new.rewrite(request)), options);
    const completion = answer.status === 200 ? parseCompletion(answer.text) : null;
    if (completion !== null) this.#new.check(completion);
    return answer;
  }

  close(): Promise<void> {
    return this.#new.connection.close();
  }

  /** Calls before the turn that the agent has not asked for. */
  #left(): CallRecord[] {
    const asked = new Set(this.#recorder?.asked);
    return this.#before.filter((call) => !asked.has(callName(call)));
  }

  #differs(
    { request: { seed: _own, ...recorded } }: CallRecord,
    { model: _model, seed: _seed, logprobs: _logprobs, return_token_ids: _ids, ...asked }: CallRequest,
  ): Error {
    const [first] = differencesOf(recorded, asked);
    const where = first === undefined ? 'another label' : describeDifference(first);
    this.#difference ??= `call ${this.#before.length - this.#left().length + 1} is not the recorded one: ${where}`;
    this.#recorder?.ending.failAs('the agent asks something else than was recorded');
    return new Error('the record has no answer');
  }
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

function hostedCompletion({ choices, promptTokens, completionTokens }: HostedCallRecord): object {
  return {
    object: 'chat.completion',
    created: 0,
    choices: choices.map(({ message, finishReason }, index) => ({ index, message, finish_reason: finishReason })),
    usage: { prompt_tokens: promptTokens, completion_tokens: completionTokens },
  };
}
