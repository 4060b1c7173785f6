/**
 * One call to a model behind OpenAI's chat completions, until it is answered: to the run's engine, a hosted model or a
 * judge. An outage is retried within the call's budget and never reaches whoever asks: refused connections, 5xx,
 * deadlines, garbage, and the statuses of `ModelKind.retries`. An internal error of the GPU worker has its own bound:
 * either the request makes the worker fail, or the worker is about to restart.
 */
import type { RolloutConfig } from '../../core/contract/contract.ts';
import { badConfig, type FailureType, TemperError } from '../../core/contract/failures.ts';
import { BODY_TOO_LARGE, CONTEXT_TOO_LONG, INTERNAL_ERROR } from '../../core/contract/wire-constants.ts';
import { parseJson } from '../../core/text/json-text.ts';
import { parseCompletion, type Completion } from './completion.ts';
import type { EngineConnection, HttpAnswer } from './engine-connection.ts';
import { readOutage, retryCall, type Outage, type RetryPolicy, type SendLimits, type Trial } from './retry-call.ts';

/** What differs between the engine, hosted models and judges. */
export interface ModelKind {
  readonly failure: 'EngineFailed' | 'JudgeFailed';
  readonly retries: RetryPolicy;
  /** What a person does about an outage that used up a call's budget. */
  readonly afterOutage: string;
  /** Remedies of its own, by the status of a refusal. */
  readonly remedies: Readonly<Record<number, string>>;
}

export interface AskedModel {
  readonly kind: ModelKind;
  readonly connection: EngineConnection;
  /** For messages: `the hosted model openai/gpt-5 at https://api.openai.com/v1`. */
  readonly title: string;
}

/**
 * `ms`: how long the try took that was answered; waits before it are an outage's, not the model's. `failure`: this very
 * request makes the engine fail, in its words; waiting does not help, and other attempts can be played.
 */
export type Asked = AnsweredRequest | RefusedRequest | { readonly failure: string };

export interface AnsweredRequest {
  readonly completion: Completion;
  /** The answer as it came. */
  readonly text: string;
  readonly ms: number;
}

/** The server does not answer this very request; another one may do. */
export interface RefusedRequest {
  readonly refused: { readonly status: number; readonly error: ErrorBody };
}

export interface ErrorBody {
  readonly message?: unknown;
  readonly type?: unknown;
  readonly code?: unknown;
  readonly param?: unknown;
}

/** A model refused a request that an agent may send and handle itself, such as a conversation that outgrew it. */
export class RequestRefused extends Error {
  override readonly name = 'RequestRefused';
  readonly status: number;
  /** From the server's response. */
  readonly error: ErrorBody;

  constructor(status: number, error: ErrorBody) {
    super(String(error.message));
    this.status = status;
    this.error = error;
  }
}

/** An internal error is one that the GPU worker did not foresee: it may pass, or repeat on each try. */
const INTERNAL_SPAN_S = 15;
/** A restarting worker answers so for some seconds; a call that waited through an outage still gets four tries. */
const INTERNAL = { code: INTERNAL_ERROR, tries: 4, spanMs: INTERNAL_SPAN_S * 1000 };
const ANSWERS_ARE_KEPT = 'what it answered before is kept';

export const ENGINE_KIND: ModelKind = {
  failure: 'EngineFailed',
  retries: {
    statuses: new Set([408, 425, 429]),
    // 429 of a hosted model whose account is empty: waiting does not help.
    finalCodes: new Set(['insufficient_quota']),
    firstWaitMs: 100,
    longestWaitMs: 2000,
    internal: INTERNAL,
  },
  afterOutage: 'start it, or correct its address (temper doctor checks both); the attempt resumes from its journal',
  remedies: { 404: 'check that the engine serves this model and reads the store of this run' },
};

/** Models that an agent or a command calls beside the policy. */
const HOSTED_KIND: ModelKind = {
  failure: 'EngineFailed',
  retries: {
    // 402: nothing left on the account. Somebody may fill it, and until then the run waits with that reason.
    statuses: new Set([402, 408, 409, 425, 429]),
    finalCodes: new Set(),
    firstWaitMs: 200,
    longestWaitMs: 10_000,
    internal: null,
  },
  afterOutage: ANSWERS_ARE_KEPT,
  remedies: {},
};

export const HOSTED_JUDGE_KIND: ModelKind = {
  failure: 'JudgeFailed',
  retries: HOSTED_KIND.retries,
  afterOutage: ANSWERS_ARE_KEPT,
  remedies: { 400: 'change the request of ruler' },
};

/** The GPU worker's own errors mean what they mean for an agent's call. */
export const ENGINE_JUDGE_KIND: ModelKind = {
  ...HOSTED_JUDGE_KIND,
  retries: { ...HOSTED_KIND.retries, internal: INTERNAL },
};

export interface AskOptions {
  readonly limits: SendLimits;
  readonly times: Pick<RolloutConfig, 'callTimeoutMs' | 'callRetryBudgetMs'>;
  readonly headers?: Record<string, string>;
}

export function askModel(model: AskedModel, body: string, { limits, times, headers = {} }: AskOptions): Promise<Asked> {
  const { kind, connection, title } = model;
  const { callTimeoutMs: deadlineMs, callRetryBudgetMs: budgetMs } = times;
  return retryCall<Asked>({
    policy: kind.retries,
    limits: { ...limits, budgetMs },
    ask: async () => {
      const start = performance.now();
      const answer = await connection.post(body, { headers, signals: limits.signals, deadlineMs });
      return readAnswer(answer, model, performance.now() - start);
    },
    exhausted: (last) => exhausted(model, budgetMs, last),
    // Part of the attempt, whose bytes are under a hash: nothing of the engine's address or of the clock.
    internal: (message) => ({ failure: `failed on a call, and on its retries for ${INTERNAL_SPAN_S} s: ${message}` }),
    // In the middle of an outage: an agent with a timeout of its own must not turn the outage into data.
    ...(kind.failure === 'EngineFailed' && {
      aborted: ({ reason }: Outage) =>
        new TemperError('EngineFailed', `a call was given up while ${title} did not answer (${reason})`),
    }),
  });
}

/** A model as an agent or a command names it. The GPU worker's internal errors are none of its. */
export async function askHosted(
  { name, connection }: { readonly name: string; readonly connection: EngineConnection },
  body: string,
  options: AskOptions,
): Promise<AnsweredRequest | RefusedRequest> {
  const title = `the hosted model ${name} at ${connection.url}`;
  return (await askModel({ kind: HOSTED_KIND, connection, title }, body, options)) as AnsweredRequest | RefusedRequest;
}

function readAnswer({ status, text, retryAfter }: HttpAnswer, model: AskedModel, ms: number): Trial<Asked> {
  const { retries } = model.kind;
  const message = excerpt(text);
  if (status === 200) {
    const completion = parseCompletion(text);
    if (completion !== null) return { answer: { completion, text, ms } };
    return { outage: { reason: `an answer that is no chat completion: ${message}`, retryAfterMs: 0, internal: null } };
  }
  const { code, type, param = null } = parseError(text) ?? {};
  const outage = readOutage({ status, retryAfter, code, type, message }, retries);
  if (outage !== null) return { outage };
  const error = { message, type, code, param };
  const named = retries.internal === null ? null : findNamedFailure(model, error);
  if (named !== null) throw named;
  const refused: RefusedRequest = { refused: { status, error } };
  if (OF_THE_REQUEST.includes(status)) return { answer: refused };
  throw refusalOf(model, refused);
}

/** Whoever sent the request may have written it: too long, or against the provider's rules. */
const OF_THE_REQUEST: readonly number[] = [400, 413, 422];

/** 413: it was too long to be sent at all. */
const OUTGROWN_STATUSES: readonly unknown[] = [400, 413];
const OUTGROWN_CODES: readonly unknown[] = [CONTEXT_TOO_LONG, BODY_TOO_LARGE];
/** vLLM's words, which have no code. */
const OUTGROWN_TEXT = /maximum context length/;

/** True if OpenAI, the GPU worker or vLLM refused a conversation longer than the model can read: data, not an outage. */
export function hasOutgrown({ status, code, message }: ErrorBody & { readonly status?: unknown }): boolean {
  return OUTGROWN_STATUSES.includes(status) && (OUTGROWN_CODES.includes(code) || OUTGROWN_TEXT.test(String(message)));
}

/** Failures that the GPU worker names itself: damaged weights, weights that give no numbers, or too little memory. */
const NAMED_BY_ENGINE: readonly FailureType[] = ['StoreCorrupt', 'LossNotFinite', 'PolicyMismatch', 'OutOfMemory'];

function findNamedFailure({ title }: AskedModel, { type, message }: ErrorBody): TemperError | null {
  const named = NAMED_BY_ENGINE.find((each) => each === type);
  return named === undefined ? null : new TemperError(named, `${title} cannot answer: ${String(message)}`);
}

/** A refusal as the mistake of whoever configured the model or the request. */
export function refusalOf({ kind, connection, title }: AskedModel, { refused: { status, error } }: RefusedRequest) {
  const { keyVariable } = connection;
  const key = keyVariable === null ? 'pass a key that it accepts' : `set ${keyVariable} to a key that it accepts`;
  const remedies: Readonly<Record<number, string>> = {
    400: 'change the request',
    401: `${key}, where the command or the workers run`,
    402: 'add credit to the account',
    403: `${key}, where the command or the workers run`,
    429: 'add credit to the account',
    ...kind.remedies,
  };
  const redirected =
    'prompts are sent only to the configured address, so redirects are not followed; set the address to the one that it redirects to';
  const isRedirect = status >= 300 && status < 400;
  const remedy = isRedirect ? redirected : (remedies[status] ?? 'check the name of the model, and the address');
  const cause = OF_THE_REQUEST.includes(status) ? new RequestRefused(status, error) : undefined;
  return badConfig(`${title} refused with ${status}: ${String(error.message)}; ${remedy}`, { cause });
}

/** A server that asks for a longer pause than a call may wait gets it from the next try of the whole piece of work. */
function exhausted({ kind, title }: AskedModel, budgetMs: number, { reason, retryAfterMs }: Outage): TemperError {
  const message = `${title} did not answer a call within its retry budget of ${budgetMs} ms (last: ${reason})`;
  return new TemperError(kind.failure, `${message}; ${kind.afterOutage}`, { retryAfterMs });
}

const MOST_SHOWN = 300;

/** The server's error message, or the beginning of its answer. */
function excerpt(text: string): string {
  const message = parseError(text)?.message;
  return (typeof message === 'string' ? message : text).slice(0, MOST_SHOWN);
}

function parseError(text: string): ErrorBody | null {
  const body = parseJson(text) as { error?: ErrorBody | null } | null | undefined;
  return body?.error ?? null;
}
