/**
 * One call, until it is answered: an outage is waited for within the call's budget, never handed to the agent.
 * Refused connections, 408, 425, 429, 5xx, deadlines and garbage are outages; other refusals are the caller's fault.
 * An internal error of the GPU worker has a bound of its own, and then fails the attempt: it may be the request that
 * makes it fail, or a worker that is about to restart.
 */
import type { RolloutConfig } from '../../core/contract.ts';
import { TemperError, type FailureType } from '../../core/failures.ts';
import { parseCompletion, type Completion } from './answer.ts';
import type { Clock } from './clock.ts';
import type { EngineConnection, HttpAnswer } from './engine-connection.ts';
import { hasOutgrown } from './outgrown.ts';

export interface SendOptions {
  engine: EngineConnection;
  headers: Record<string, string>;
  rollout: Pick<RolloutConfig, 'callTimeoutMs' | 'callRetryBudgetMs'>;
  /** Ends the call, its waits included. */
  signals: readonly AbortSignal[];
  /** Throws where this process may not act any more. */
  checkFresh: () => void;
  /** Told when the call begins to wait for the engine, and when it is answered or given up. */
  outage: {
    began(reason: string, since: number): void;
    goesOn(reason: string, nextTryAt: number): void;
    ended(): void;
  };
  clock: Clock;
}

/** An answer that the agent should see as it is: a bad request of its own making that is part of the game. */
interface Refusal {
  status: number;
  text: string;
}

/**
 * `ms`: how long the try took that was answered; waits before it are an outage's, not the model's. `failure`: this very
 * request makes the engine fail, in its words; waiting does not help, and other attempts can be played.
 */
export type Sent = { completion: Completion; text: string; ms: number } | { refusal: Refusal } | { failure: string };

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2000;
const OUTAGE_STATUSES = new Set([408, 425, 429]);
const OUT_OF_CREDIT = 'insufficient_quota';
/** What the GPU worker calls a failure of its own that it did not foresee. It may pass, or come with each try. */
const INTERNAL = 'internal';
/** Both: a worker that restarts answers so for some seconds, and a request that waited out an outage has a few tries left. */
const INTERNAL_TRIES = 4;
const INTERNAL_SPAN_MS = 15_000;

interface Outage {
  outage: string;
  /** As long as the engine asked for; 0 where it did not. */
  retryAfterMs: number;
  /** What the engine said of an error of its own. */
  internal?: string;
}

/** What an engine knows better than its client: never the client's own mistakes. */
const NAMED_BY_ENGINE: readonly FailureType[] = ['StoreCorrupt', 'LossNotFinite', 'PolicyMismatch', 'OutOfMemory'];

type Trial = { sent: Sent } | Outage;

export async function send(body: string, options: SendOptions): Promise<Sent> {
  const start = options.clock.now();
  const first = await tryOnce(body, options);
  if ('sent' in first) return first.sent;
  options.outage.began(first.outage, start);
  return outlast(body, options, first);
}

async function outlast(body: string, options: SendOptions, first: Outage): Promise<Sent> {
  const { callRetryBudgetMs } = options.rollout;
  const { clock } = options;
  const end = clock.now() + callRetryBudgetMs;
  try {
    let trial: Trial = first;
    let internalErrors = 0;
    let internalSince: number | null = null;
    for (let wait = FIRST_WAIT_MS; 'outage' in trial; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      const now = clock.now();
      let waitMs = wait;
      if (trial.internal === undefined) {
        const leftMs = end - now;
        if (leftMs <= 0 || trial.retryAfterMs > leftMs) throw exhausted(options.engine, callRetryBudgetMs, trial);
        waitMs = Math.max(Math.min(wait, leftMs), trial.retryAfterMs);
      } else {
        internalErrors += 1;
        internalSince ??= now;
        if (internalErrors >= INTERNAL_TRIES && now - internalSince >= INTERNAL_SPAN_MS) return givenUp(trial.internal);
      }
      options.outage.goesOn(trial.outage, now + waitMs);
      await clock.sleep(waitMs, AbortSignal.any([...options.signals]));
      trial = await tryOnce(body, options);
    }
    return trial.sent;
  } catch (error) {
    if (error instanceof TemperError) throw error;
    // Aborted in the middle of an outage: an agent with a timeout of its own must not turn the outage into data.
    throw new TemperError('EngineFailed', `a call was given up while the engine did not answer (${first.outage})`);
  } finally {
    options.outage.ended();
  }
}

async function tryOnce(body: string, options: SendOptions): Promise<Trial> {
  options.checkFresh();
  const { engine, headers, signals, rollout } = options;
  const start = performance.now();
  try {
    const answer = await engine.post(body, { headers, signals, deadlineMs: rollout.callTimeoutMs });
    return judgeAnswer(answer, engine, performance.now() - start);
  } catch (error) {
    if (error instanceof TemperError || signals.some((signal) => signal.aborted)) throw error;
    return { outage: describeFailure(error), retryAfterMs: 0 };
  }
}

function judgeAnswer(answer: HttpAnswer, engine: EngineConnection, ms: number): Trial {
  const { status, text } = answer;
  if (status === 200) {
    const completion = parseCompletion(text);
    return completion === null
      ? { outage: `an answer that is no chat completion: ${excerpt(text)}`, retryAfterMs: 0 }
      : { sent: { completion, text, ms } };
  }
  if (status >= 500 || (OUTAGE_STATUSES.has(status) && !isOutOfCredit(text))) {
    const outage = { outage: `${status}: ${excerpt(text)}`, retryAfterMs: parseRetryAfter(answer.retryAfter) };
    return parseError(text)?.code === INTERNAL ? { ...outage, internal: excerpt(text) } : outage;
  }
  if (hasOutgrown({ ...parseError(text), status })) return { sent: { refusal: { status, text } } };
  throw namedFailure(text, engine.url) ?? refused(status, text, engine);
}

/** The GPU worker says which boundary was crossed: weights that are damaged in the store, or give no numbers, or for which there is no room. */
function namedFailure(text: string, engineUrl: string): TemperError | null {
  const { type, message } = parseError(text) ?? {};
  if (typeof type !== 'string' || typeof message !== 'string') return null;
  if (!NAMED_BY_ENGINE.some((named) => named === type)) return null;
  return new TemperError(type as FailureType, `the engine at ${engineUrl} cannot answer: ${message}`);
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
  return new TemperError('BadConfig', `the engine at ${url} refused with ${status}: ${excerpt(text)}; ${remedy}`);
}

/** Part of the attempt, whose bytes are under a hash: nothing of the engine's address or of the clock. */
function givenUp(message: string): Sent {
  const spanS = INTERNAL_SPAN_MS / 1000;
  return { failure: `the engine failed on a call, and on its retries for ${spanS} s: ${message}` };
}

/** An engine that wants to be left alone for longer than a call may wait is left alone by the next try of all. */
function exhausted(engine: EngineConnection, budgetMs: number, { outage, retryAfterMs }: Outage): TemperError {
  const message = `the engine at ${engine.url} did not answer a call within its retry budget of ${budgetMs} ms (last: ${outage})`;
  const hint = 'start it, or correct its address (temper doctor checks both); the attempt resumes from its journal';
  return new TemperError('EngineFailed', `${message}; ${hint}`, { retryAfterMs });
}

/** Seconds or a date, as HTTP has it. */
export function parseRetryAfter(value: string | null): number {
  if (value === null) return 0;
  const seconds = Number(value);
  const waitMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : 0;
}

/** A hosted model's account is empty: it says 429, and waiting does not help. */
function isOutOfCredit(text: string): boolean {
  const error = parseError(text);
  return error?.code === OUT_OF_CREDIT || error?.type === OUT_OF_CREDIT;
}

/** What the engine says for itself, or the beginning of what it sent. */
function excerpt(text: string): string {
  const message = parseError(text)?.message;
  return (typeof message === 'string' ? message : text).slice(0, 300);
}

function parseError(text: string): { code?: unknown; type?: unknown; message?: unknown } | null {
  try {
    const body = JSON.parse(text) as { error?: { code?: unknown; type?: unknown; message?: unknown } | null } | null;
    return body?.error ?? null;
  } catch {
    return null;
  }
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return `${code}${error.message || 'connection refused'}`;
}
