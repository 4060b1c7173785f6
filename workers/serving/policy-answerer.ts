/** One request to a served policy: what the client asks, as an evaluation of its run would have asked it. */
import { TemperError } from '../../core/contract/failures.ts';
import { DEADLINE_HEADER } from '../../core/contract/wire-constants.ts';
import type { EngineConnection, HttpAnswer } from '../../play/connections/engine-connection.ts';
import type { Answerer } from '../../play/dialects/answer-request.ts';
import { parseCompletion, type Completion } from '../../play/connections/completion.ts';
import { checkPolicy } from '../../play/recorder/answer.ts';
import type { CallOptions } from '../../play/recorder/recorder.ts';
import { checkRequest, type AskedRollout, type CheckedRequest } from '../../play/recorder/request.ts';
import type { AnsweredCalls, AskedRequest } from '../../play/recorder/canonical.ts';
import { RequestRefused } from '../../play/connections/ask-model.ts';
import type { AnswerRecorder, BegunRecording, ServedCall } from './recording/answer-recorder.ts';

export interface ServedPolicy {
  /** Name that the engine uses. */
  readonly name: string;
  readonly adapterSha256: string;
  /** Names that clients may send, the engine's among them. */
  readonly names: readonly string[];
  /** Defaults of the run for requests. */
  readonly rollout: AskedRollout;
}

/** HTTP status and headers of a refusal; its dialect writes the body. */
interface RefusalHead {
  readonly status: number;
  readonly headers: Record<string, string>;
}

/** Default deadline of the engine; the connection is closed later, because the engine's error says more. */
const DEADLINE_MS = 300_000;
const GRACE_MS = 30_000;
/** Timers know no longer one. */
const LONGEST_MS = 2 ** 31 - 1;

export interface AnswererOptions {
  readonly policy: ServedPolicy;
  /** Null while there is none yet. */
  readonly connection: EngineConnection | null;
  /** Earlier tool calls of the policy, which are returned to it in its own words. */
  readonly answered: AnsweredCalls;
  /** Header of the client; the engine reads it. */
  readonly deadline: string | null;
  /** Null: nothing is recorded. */
  readonly recorder: AnswerRecorder | null;
  /** API of the request, and its client's name for the conversation. */
  readonly place: Pick<ServedCall, 'api' | 'named'>;
}

export class PolicyAnswerer implements Answerer {
  readonly #policy: ServedPolicy;
  readonly #connection: EngineConnection | null;
  readonly #answered: AnsweredCalls;
  readonly #deadline: string | null;
  readonly #recorder: AnswerRecorder | null;
  readonly #place: AnswererOptions['place'];
  #recording: BegunRecording | null = null;
  #refusal: RefusalHead | null = null;

  constructor({ policy, connection, answered, deadline, recorder, place }: AnswererOptions) {
    this.#policy = policy;
    this.#connection = connection;
    this.#answered = answered;
    this.#deadline = deadline;
    this.#recorder = recorder;
    this.#place = place;
  }

  /** Null if nothing was refused. */
  get refusal(): RefusalHead | null {
    return this.#refusal;
  }

  /** Name of the recorded conversation; null if it is not known yet, or not recorded. */
  get conversation(): string | null {
    return this.#recording?.conversation ?? null;
  }

  async call(asked: AskedRequest, options: CallOptions): Promise<Completion> {
    const checked = this.#check(asked, options);
    const recording = this.#begin(asked, checked);
    this.#recording = recording;
    const { name, adapterSha256 } = this.#policy;
    const { request, wantsLogprobs } = checked;
    const logprobs = wantsLogprobs ? { logprobs: true } : {};
    const body = JSON.stringify({ ...request, model: name, ...logprobs, ...recording?.parameters });
    const { text } = await this.#ask(body, options.signal ?? null);
    const completion = parseCompletion(text);
    if (completion === null) throw this.#refuse(502, { message: 'the engine answered with no completion; retry' });
    checkPolicy(completion, { model: name, adapterSha256 });
    this.#answered.keep(completion);
    return recording === null ? completion : recording.answer(completion);
  }

  refuse(error: unknown): Promise<unknown> {
    return Promise.resolve(error);
  }

  #check(asked: AskedRequest, { boundsTokens = false }: CallOptions): CheckedRequest {
    const { name, names, rollout } = this.#policy;
    // There is one to ask.
    const wanted = asked['model'] ?? name;
    if (typeof wanted !== 'string' || !names.includes(wanted))
      throw this.#refuse(404, {
        message: `model must be ${names.join(' or ')}, got ${JSON.stringify(wanted)}; change it, or start another temper serve for that model`,
        code: 'model_not_found',
        param: 'model',
      });
    const rules = { model: name, mode: 'eval', rollout, answered: this.#answered, boundsTokens } as const;
    return checkRequest({ ...asked, model: name }, rules);
  }

  #begin(asked: AskedRequest, checked: CheckedRequest): BegunRecording | null {
    const { name: policy, rollout } = this.#policy;
    const engineUrl = this.#connection?.url ?? '';
    return this.#recorder?.begin({ ...this.#place, ...checked, asked, policy, rollout, engineUrl }) ?? null;
  }

  async #ask(body: string, signal: AbortSignal | null): Promise<HttpAnswer> {
    const signals = signal === null ? [] : [signal];
    try {
      if (this.#connection === null) throw new Error('it starts');
      const headers = this.#deadline === null ? {} : { [DEADLINE_HEADER]: this.#deadline };
      const deadlineMs = Math.min((Number(this.#deadline) || DEADLINE_MS) + GRACE_MS, LONGEST_MS);
      const answer = await this.#connection.post(body, { headers, deadlineMs, signals });
      if (answer.status === 200) return answer;
      throw this.#refuse(answer.status, errorOf(answer.text), answer.retryAfter);
    } catch (error) {
      if (error instanceof RequestRefused || signal?.aborted) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw this.#refuse(503, { message: `the engine gave no answer (${reason}); retry`, type: 'EngineFailed' }, '2');
    }
  }

  #refuse(status: number, error: ErrorBody, retryAfter: string | null = null): RequestRefused {
    this.#refusal = {
      status,
      headers: { 'content-type': 'application/json', ...(retryAfter === null ? {} : { 'retry-after': retryAfter }) },
    };
    return new RequestRefused(status, { type: 'BadConfig', code: null, param: null, ...error });
  }
}

type ErrorBody = RequestRefused['error'];

/** The engine's own words. */
function errorOf(text: string): ErrorBody {
  try {
    const { error } = JSON.parse(text) as { error?: ErrorBody };
    if (error) return error;
  } catch {
    // The error is not the engine's: the rule below.
  }
  throw new TemperError('EngineFailed', 'the engine answered with something that is no error of it; retry');
}
