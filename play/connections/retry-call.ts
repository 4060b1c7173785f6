/**
 * The retry loop of all calls to models. `RetryPolicy` says what is retried and for how long. The caller says what counts
 * as an answer and which error ends the call.
 */
import { TemperError } from '../../core/contract/failures.ts';
import type { Clock, OutageClock } from './clock.ts';

export interface RetryPolicy {
  /** Retried besides 5xx. A call without a usable answer (no connection, deadline, garbage) is always retried. */
  readonly statuses: ReadonlySet<number>;
  /** Error codes or types that are not retried although their status is in `statuses`. */
  readonly finalCodes: ReadonlySet<string>;
  readonly firstWaitMs: number;
  readonly longestWaitMs: number;
  /**
   * An error that the request itself may cause, by its code. The call is given up only after both `tries` and `spanMs`,
   * whatever its retry budget. Null: such an error is retried like any other.
   */
  readonly internal: { readonly code: string; readonly tries: number; readonly spanMs: number } | null;
}

/** Why a try failed that may succeed later. */
export interface Outage {
  /** For people. */
  readonly reason: string;
  /** From the Retry-After header; 0 without one. */
  readonly retryAfterMs: number;
  /** The server's message if this is an internal error of `RetryPolicy`; otherwise null. */
  readonly internal: string | null;
}

export type Trial<T> = { readonly answer: T } | { readonly outage: Outage };

/** Limits of a call, the same for each of its tries. */
interface CallLimits extends SendLimits {
  readonly budgetMs: number;
}

export interface SendLimits {
  /** Abort the call, including its waits. */
  readonly signals: readonly AbortSignal[];
  /** Throws where this process may not act any more. */
  readonly checkFresh: () => void;
  /** Learns when the call begins to wait, and when it is answered or given up. */
  readonly outage: Pick<OutageClock, 'began' | 'goesOn' | 'ended'>;
  readonly clock: Clock;
}

export interface RetriedCall<T> {
  readonly policy: RetryPolicy;
  readonly limits: CallLimits;
  /** One try. A TemperError ends the call; any other error is an outage. */
  readonly ask: () => Promise<Trial<T>>;
  /** The error once the budget is used up, or the server asks for a longer pause than is left of it. */
  readonly exhausted: (last: Outage) => TemperError;
  /** The answer once an internal error is given up, or its error. */
  readonly internal: (message: string) => T;
  /** The error of a call aborted during an outage; by default the abort reason is thrown. */
  readonly aborted?: (first: Outage) => TemperError;
}

export async function retryCall<T>(call: RetriedCall<T>): Promise<T> {
  const { clock, outage } = call.limits;
  const start = clock.now();
  const first = await tryOnce(call);
  if ('answer' in first) return first.answer;
  outage.began(first.outage.reason, start);
  try {
    return await outlast(call, first.outage);
  } catch (error) {
    throw error instanceof TemperError || !isAborted(call) ? error : (call.aborted?.(first.outage) ?? error);
  } finally {
    outage.ended();
  }
}

async function outlast<T>(call: RetriedCall<T>, first: Outage): Promise<T> {
  const { policy, limits } = call;
  const { clock } = limits;
  const end = clock.now() + limits.budgetMs;
  const internal = { tries: 0, since: 0 };
  let last = first;
  for (let pauseMs = policy.firstWaitMs; ; pauseMs = Math.min(pauseMs * 2, policy.longestWaitMs)) {
    const now = clock.now();
    let waitMs = pauseMs;
    if (last.internal === null) {
      const leftMs = end - now;
      if (leftMs <= 0 || last.retryAfterMs > leftMs) throw call.exhausted(last);
      waitMs = Math.max(Math.min(pauseMs, leftMs), last.retryAfterMs);
    } else {
      if (internal.tries === 0) internal.since = now;
      internal.tries += 1;
      if (isGivenUp(policy, internal.tries, now - internal.since)) return call.internal(last.internal);
    }
    limits.outage.goesOn(last.reason, now + waitMs);
    await clock.sleep(waitMs, AbortSignal.any([...limits.signals]));
    const trial = await tryOnce(call);
    if ('answer' in trial) return trial.answer;
    last = trial.outage;
  }
}

function isGivenUp({ internal }: RetryPolicy, tries: number, elapsedMs: number): boolean {
  return internal !== null && tries >= internal.tries && elapsedMs >= internal.spanMs;
}

async function tryOnce<T>(call: RetriedCall<T>): Promise<Trial<T>> {
  call.limits.checkFresh();
  try {
    return await call.ask();
  } catch (error) {
    if (error instanceof TemperError || isAborted(call)) throw error;
    return { outage: { reason: describeFailure(error), retryAfterMs: 0, internal: null } };
  }
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return `${code}${error.message || 'connection refused'}`;
}

function isAborted<T>({ limits }: RetriedCall<T>): boolean {
  return limits.signals.some((signal) => signal.aborted);
}

/** An HTTP response with an error status. */
export interface Refusal {
  readonly status: number;
  readonly retryAfter: string | null;
  /** Code of the error in the body. */
  readonly code?: unknown;
  readonly type?: unknown;
  /** For people. */
  readonly message: string;
}

/** Null if a retry would get the same response. */
export function readOutage(refusal: Refusal, policy: RetryPolicy): Outage | null {
  const { status, code, type, message, retryAfter } = refusal;
  const reason = `${status}: ${message}`;
  const isFinal = [code, type].some((named) => typeof named === 'string' && policy.finalCodes.has(named));
  if (status < 500 && (isFinal || !policy.statuses.has(status))) return null;
  if (policy.internal !== null && code === policy.internal.code) return { reason, retryAfterMs: 0, internal: message };
  return { reason, retryAfterMs: parseRetryAfter(retryAfter), internal: null };
}

/** HTTP allows seconds or a date. */
function parseRetryAfter(value: string | null): number {
  if (value === null) return 0;
  const seconds = Number(value);
  const waitMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : 0;
}
