/** One question to a judge, until it is answered: an outage is waited for as the provider asks, within a budget. */
import { APIError } from 'openai';

import { CONTEXT_TOO_LONG } from '../../core/contract/wire-constants.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { JudgeAnswer } from '../../store/records/judging/verdicts.ts';
import { SYSTEM_CLOCK, type Clock } from '../recorder/clock.ts';
import {
  HOSTED_RETRIES,
  readOutage,
  retryCall,
  type CallLimits,
  type Outage,
  type RetryPolicy,
} from '../recorder/retry-call.ts';
import { ENGINE_INTERNAL, namedFailure } from '../recorder/send.ts';
import type { Judge, JudgeMessage } from './judge-client.ts';

export interface JudgePatience extends Pick<CallLimits, 'checkFresh' | 'outage'> {
  readonly clock?: Clock;
  readonly callTimeoutMs: number;
  /** How long one call is tried again while the provider refuses, answers 429 or 5xx. */
  readonly callRetryBudgetMs: number;
  /** Ends the call, its waits included. */
  readonly signal: AbortSignal;
}

/** The GPU worker's own errors mean what they mean for an agent's call. */
const ENGINE_JUDGE_RETRIES: RetryPolicy = { ...HOSTED_RETRIES, internal: ENGINE_INTERNAL };

const policyOf = ({ isOnEngine }: Judge): RetryPolicy => (isOnEngine ? ENGINE_JUDGE_RETRIES : HOSTED_RETRIES);

export function askPatiently(
  judge: Judge,
  messages: readonly JudgeMessage[],
  { callTimeoutMs, callRetryBudgetMs: budgetMs, signal, checkFresh, outage, clock = SYSTEM_CLOCK }: JudgePatience,
): Promise<JudgeAnswer> {
  return retryCall<JudgeAnswer>({
    policy: policyOf(judge),
    limits: { budgetMs, signals: [signal], checkFresh, outage, clock },
    ask: async () => ({ answer: await judge.ask(messages, { timeoutMs: callTimeoutMs, signal }) }),
    readError: (error) => readFailure(judge, error),
    exhausted: (last) => exhausted(judge, budgetMs, last),
    internal: (message) => {
      throw givenUp(judge, message);
    },
  });
}

/** The judge cannot read so much; shorter attempts may do. */
export class PromptTooLong extends Error {
  override readonly name = 'PromptTooLong';
}

const TOO_LONG =
  // oxlint-disable-next-line temper/linear-regex -- 40 characters at each match
  /context[ _]length|context window|maximum context|too (?:long|large|many tokens)|exceeds? .{0,40}tokens/i;

function isTooLong(status: number, said: string, code: unknown): boolean {
  return status === 413 || (status === 400 && (code === CONTEXT_TOO_LONG || TOO_LONG.test(said)));
}

function readFailure(judge: Judge, error: unknown): Outage {
  const refusal = refusalIn(error);
  if (refusal !== null) throw refusal;
  const reason = describe(error);
  const status = error instanceof APIError ? (error.status as number | undefined) : undefined;
  if (status === undefined) return { reason, retryAfterMs: 0, internal: null };
  const { headers, code, type } = error as { headers?: Headers; code?: unknown; type?: unknown };
  const retryAfter = headers?.get('retry-after') ?? null;
  const outage = readOutage({ status, code, type, retryAfter, reason, message: reason }, policyOf(judge));
  if (outage !== null) return outage;
  if (isTooLong(status, reason, code)) throw new PromptTooLong(reason);
  const named = judge.isOnEngine ? namedFailure(type, reason, `the judge ${judge.name}`) : null;
  if (named !== null) throw named;
  throw badConfig(`the judge ${judge.name} refused with ${reason}; ${REMEDIES[status] ?? OTHER_REMEDY}`);
}

/** The connection does not ask at all, for example because a budget is used up: no wait would change that. */
function refusalIn(error: unknown): TemperError | null {
  const cause = error instanceof APIError ? error.cause : error;
  return cause instanceof TemperError && cause.type === 'BadConfig' ? cause : null;
}

const REDIRECTED =
  'conversations are sent only to the configured address, so redirects are not followed; set the address to the one that it redirects to';
const REMEDIES: Readonly<Record<number, string>> = {
  301: REDIRECTED,
  302: REDIRECTED,
  303: REDIRECTED,
  307: REDIRECTED,
  308: REDIRECTED,
  400: 'change the request of ruler',
  401: "check the key in the provider's environment variable, where the worker runs",
  403: 'check that the key may use this model',
  404: 'check the name of the model, and the address',
};
const OTHER_REMEDY = 'check the name of the model, and the request option of ruler';

/** A provider that wants to be left alone for longer is left alone by the next try of all. */
function exhausted({ name }: Judge, budgetMs: number, { reason, retryAfterMs }: Outage): TemperError {
  const message = `the judge ${name} did not answer a call within its retry budget of ${budgetMs} ms (last: ${reason})`;
  return new TemperError('JudgeFailed', `${message}; what it answered before is kept`, { retryAfterMs });
}

function givenUp({ name }: Judge, message: string): TemperError {
  const what = `failed on a call, and on its retries for ${ENGINE_INTERNAL.spanMs / 1000} s`;
  return new TemperError('JudgeFailed', `the judge ${name} ${what}: ${message}; what it answered before is kept`);
}

const MAX_SAID = 300;

/** The cause says what a connection failed for; of a deadline it says no more than that. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error).slice(0, MAX_SAID);
  const isConnection = error instanceof APIError && error.cause instanceof Error;
  const cause = isConnection ? innermost(error.cause as Error) : null;
  const text = cause === null || cause.message === '' ? error.message : `${error.message} (${cause.message})`;
  return text.slice(0, MAX_SAID);
}

function innermost(error: Error): Error {
  return error.cause instanceof Error ? innermost(error.cause) : error;
}
