/**
 * The one retry loop for calls to models: of agents (send.ts) and of judges (ruler/ask.ts). What is retried, and for how
 * long, is data (`RetryPolicy`); what an answer is, and what a failure means, each caller says itself.
 */
import { TemperError } from '../../core/failures.ts';
import type { Clock } from './clock.ts';
import type { OutageClock } from './outage-clock.ts';

export interface RetryPolicy {
  /** Retried besides 5xx. A call without an answer (no connection, silence, garbage) is retried always. */
  readonly statuses: ReadonlySet<number>;
  /** Error codes or types that waiting does not change, whatever the status of those above. */
  readonly finalCodes: ReadonlySet<string>;
  readonly firstWaitMs: number;
  readonly longestWaitMs: number;
  /**
   * The code of an error that the request itself may cause. It is given up after so many tries and so much time, both,
   * whatever the retry budget. Null: there is none.
   */
  readonly internal: { readonly code: string; readonly tries: number; readonly spanMs: number } | null;
}

/** Why a try came to nothing, where another one may be answered. */
export interface Outage {
  /** For people. */
  readonly reason: string;
  /** As long as the server asked for; 0 where it did not. */
  readonly retryAfterMs: number;
  /** What the server said of an internal error; null for any other outage. */
  readonly internal: string | null;
}

export type Trial<T> = { readonly answer: T } | { readonly outage: Outage };

/** What ends or accompanies a call, and is the same for each of its tries. */
export interface CallLimits {
  readonly budgetMs: number;
  /** End the call, its waits included. */
  readonly signals: readonly AbortSignal[];
  /** Throws where this process may not act any more. */
  readonly checkFresh: () => void;
  /** Told when the call begins to wait, and when it is answered or given up. */
  readonly outage: Pick<OutageClock, 'began' | 'goesOn' | 'ended'>;
  readonly clock: Clock;
}

export interface RetriedCall<T> {
  readonly policy: RetryPolicy;
  readonly limits: CallLimits;
  /** One try. A TemperError ends the call; any other error goes to `readError`. */
  readonly ask: () => Promise<Trial<T>>;
  /** May throw what ends the call. */
  readonly readError: (error: unknown) => Outage;
  /** The budget is used up, or the server asks for a longer pause than is left of it. */
  readonly exhausted: (last: Outage) => TemperError;
  /** What an internal error comes to that stayed. */
  readonly internal?: (message: string) => T;
  /** Aborted during an outage; by default the abort itself is thrown. */
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
      const isOver = isGivenUp(policy, internal.tries, now - internal.since);
      if (isOver && call.internal !== undefined) return call.internal(last.internal);
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
    return { outage: call.readError(error) };
  }
}

function isAborted<T>({ limits }: RetriedCall<T>): boolean {
  return limits.signals.some((signal) => signal.aborted);
}

/** What a server said instead of an answer. */
export interface Refusal {
  readonly status: number;
  readonly retryAfter: string | null;
  /** As its error names it. */
  readonly code?: unknown;
  readonly type?: unknown;
  /** For people, with and without the status. */
  readonly reason: string;
  readonly message: string;
}

/** Null where the same call would be refused again. */
export function readOutage(refusal: Refusal, policy: RetryPolicy): Outage | null {
  const { status, code, type, reason, message, retryAfter } = refusal;
  const isFinal = [code, type].some((named) => typeof named === 'string' && policy.finalCodes.has(named));
  if (status < 500 && (isFinal || !policy.statuses.has(status))) return null;
  if (policy.internal !== null && code === policy.internal.code) return { reason, retryAfterMs: 0, internal: message };
  return { reason, retryAfterMs: parseRetryAfter(retryAfter), internal: null };
}

/** Seconds or a date, as HTTP has it. */
function parseRetryAfter(value: string | null): number {
  if (value === null) return 0;
  const seconds = Number(value);
  const waitMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : 0;
}
