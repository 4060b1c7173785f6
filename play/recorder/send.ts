/**
 * One call to the engine, until it is answered. An outage is retried within the call's budget and never reaches the
 * agent: refused connections, 408, 425, 429, 5xx, deadlines and garbage. Other refusals are the caller's mistake. An
 * internal error of the GPU worker has its own bound, after which the attempt fails: either the request makes the worker
 * fail, or the worker is about to restart.
 */
import { BODY_TOO_LARGE, CONTEXT_TOO_LONG, INTERNAL_ERROR } from '../../core/contract/wire-constants.ts';
import type { RolloutConfig } from '../../core/contract/contract.ts';
import { badConfig, type FailureType, TemperError } from '../../core/contract/failures.ts';
import { parseCompletion, type Completion } from './answer.ts';
import type { EngineConnection, HttpAnswer } from '../connections/engine-connection.ts';
import { readOutage, retryCall, type Outage, type RetryPolicy, type SendLimits, type Trial } from './retry-call.ts';

export interface SendOptions extends SendLimits {
  engine: EngineConnection;
  headers: Record<string, string>;
  rollout: Pick<RolloutConfig, 'callTimeoutMs' | 'callRetryBudgetMs'>;
}

/**
 * `ms`: how long the try took that was answered; waits before it are an outage's, not the model's. `failure`: this very
 * request makes the engine fail, in its words; waiting does not help, and other attempts can be played.
 */
export type Sent =
  | { completion: Completion; text: string; ms: number }
  | { refusal: RequestRefused }
  | { failure: string };

/** The engine refused a request that an agent may send and handle itself: its conversation outgrew the model. */
export class RequestRefused extends Error {
  override readonly name = 'RequestRefused';
  readonly status: number;
  /** From the engine's response. */
  readonly error: ErrorBody;

  constructor(status: number, error: ErrorBody) {
    super(String(error.message));
    this.status = status;
    this.error = error;
  }
}

export interface ErrorBody {
  readonly message?: unknown;
  readonly type?: unknown;
  readonly code?: unknown;
  readonly param?: unknown;
}

/** An internal error is one that the GPU worker did not foresee: it may pass, or repeat on each try. */
const INTERNAL_SPAN_S = 15;
/** A restarting worker answers so for some seconds; a call that waited through an outage still gets four tries. */
export const ENGINE_INTERNAL = { code: INTERNAL_ERROR, tries: 4, spanMs: INTERNAL_SPAN_S * 1000 };
export const ENGINE_RETRIES: RetryPolicy = {
  statuses: new Set([408, 425, 429]),
  // 429 of a hosted model whose account is empty: waiting does not help.
  finalCodes: new Set(['insufficient_quota']),
  firstWaitMs: 100,
  longestWaitMs: 2000,
  internal: ENGINE_INTERNAL,
};

/** Failures that the engine names itself: never the client's own mistakes. */
const NAMED_BY_ENGINE: readonly FailureType[] = ['StoreCorrupt', 'LossNotFinite', 'PolicyMismatch', 'OutOfMemory'];

export function send(body: string, options: SendOptions): Promise<Sent> {
  const { engine, rollout } = options;
  const budgetMs = rollout.callRetryBudgetMs;
  return retryCall<Sent>({
    policy: ENGINE_RETRIES,
    limits: { ...options, budgetMs },
    ask: () => ask(body, options),
    readError: (error) => ({ reason: describeFailure(error), retryAfterMs: 0, internal: null }),
    exhausted: (last) => exhausted(engine, budgetMs, last),
    internal: givenUp,
    // In the middle of an outage: an agent with a timeout of its own must not turn the outage into data.
    aborted: ({ reason }) =>
      new TemperError('EngineFailed', `a call was given up while the engine did not answer (${reason})`),
  });
}

async function ask(body: string, { engine, headers, signals, rollout }: SendOptions): Promise<Trial<Sent>> {
  const start = performance.now();
  const answer = await engine.post(body, { headers, signals, deadlineMs: rollout.callTimeoutMs });
  return readAnswer(answer, engine, performance.now() - start);
}

function readAnswer({ status, text, retryAfter }: HttpAnswer, engine: EngineConnection, ms: number): Trial<Sent> {
  if (status === 200) {
    const completion = parseCompletion(text);
    if (completion !== null) return { answer: { completion, text, ms } };
    const reason = `an answer that is no chat completion: ${excerpt(text)}`;
    return { outage: { reason, retryAfterMs: 0, internal: null } };
  }
  const error = parseError(text);
  const message = excerpt(text);
  const refusal = {
    status,
    retryAfter,
    code: error?.code,
    type: error?.type,
    message,
    reason: `${status}: ${message}`,
  };
  const outage = readOutage(refusal, ENGINE_RETRIES);
  if (outage !== null) return { outage };
  if (error !== null && hasOutgrown({ ...error, status }))
    return { answer: { refusal: new RequestRefused(status, error) } };
  throw namedFailure(error?.type, error?.message, `the engine at ${engine.url}`) ?? refused(status, text, engine);
}

/** 413: it was too long to be sent at all. */
const OUTGROWN_STATUSES: readonly unknown[] = [400, 413];
const OUTGROWN_CODES: readonly unknown[] = [CONTEXT_TOO_LONG, BODY_TOO_LARGE];
/** vLLM's words, which have no code. */
const OUTGROWN_TEXT = /maximum context length/;

/** True if OpenAI, the GPU worker or vLLM refused a conversation longer than the model can read: data, not an outage. */
export function hasOutgrown({ status, code, message }: ErrorBody & { readonly status?: unknown }): boolean {
  return OUTGROWN_STATUSES.includes(status) && (OUTGROWN_CODES.includes(code) || OUTGROWN_TEXT.test(String(message)));
}

/** The failure that the GPU worker names: damaged weights, weights that give no numbers, or too little memory. */
export function namedFailure(type: unknown, message: unknown, engine: string): TemperError | null {
  if (typeof message !== 'string') return null;
  const named = NAMED_BY_ENGINE.find((each) => each === type);
  return named === undefined ? null : new TemperError(named, `${engine} cannot answer: ${message}`);
}

function refused(status: number, text: string, { url, keyVariable }: EngineConnection): TemperError {
  const setKey = keyVariable === null ? 'pass a key that it accepts' : `set ${keyVariable} to a key that it accepts`;
  const remedies: Record<number, string> = {
    400: 'change the request',
    401: setKey,
    402: 'add credit to the account',
    403: setKey,
    404: 'check that the engine serves this model and reads the store of this run',
    429: 'add credit to the account',
  };
  const remedy = remedies[status] ?? 'check the address of the engine';
  const message = `the engine at ${url} refused with ${status}: ${excerpt(text)}; ${remedy}`;
  const isOfRequest = status === 400 || status === 413 || status === 422;
  const cause = isOfRequest ? new RequestRefused(status, { message: excerpt(text) }) : undefined;
  return badConfig(message, { cause });
}

/** Part of the attempt, whose bytes are under a hash: nothing of the engine's address or of the clock. */
function givenUp(message: string): Sent {
  return { failure: `the engine failed on a call, and on its retries for ${INTERNAL_SPAN_S} s: ${message}` };
}

/** An engine that wants to be left alone for longer than a call may wait is left alone by the next try of all. */
function exhausted(engine: EngineConnection, budgetMs: number, { reason, retryAfterMs }: Outage): TemperError {
  const message = `the engine at ${engine.url} did not answer a call within its retry budget of ${budgetMs} ms (last: ${reason})`;
  const hint = 'start it, or correct its address (temper doctor checks both); the attempt resumes from its journal';
  return new TemperError('EngineFailed', `${message}; ${hint}`, { retryAfterMs });
}

/** The engine's error message, or the beginning of its answer. */
export function excerpt(text: string): string {
  const message = parseError(text)?.message;
  return (typeof message === 'string' ? message : text).slice(0, 300);
}

export function parseError(text: string): ErrorBody | null {
  try {
    const body = JSON.parse(text) as { error?: ErrorBody | null } | null;
    return body?.error ?? null;
  } catch {
    return null;
  }
}

export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return `${code}${error.message || 'connection refused'}`;
}
