/** One question to a judge, until it is answered: an outage is waited for as the provider asks, within a budget. */
import { setTimeout as sleep } from 'node:timers/promises';
import { APIError } from 'openai';

import { TemperError } from '../../core/failures.ts';
import type { JudgeAnswer } from '../../store/verdicts.ts';
import type { OutageClock } from '../recorder/outage-clock.ts';
import { parseRetryAfter } from '../recorder/send.ts';
import type { Judge, JudgeMessage } from './judge-client.ts';

export interface Patience {
  readonly callTimeoutMs: number;
  /** How long one call is tried again while the provider refuses, answers 429 or 5xx. */
  readonly callRetryBudgetMs: number;
  /** Ends the call, its waits included. */
  readonly signal: AbortSignal;
  /** Throws where this process may not act any more. */
  readonly checkFresh: () => void;
  /** Told when the call begins to wait for the judge, and when it is answered or given up. */
  readonly outage: Pick<OutageClock, 'began' | 'goesOn' | 'ended'>;
}

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 10_000;
/** 402: nothing left on the account. Somebody may fill it, and until then the run waits with that reason. */
const OUTAGE_STATUSES = new Set([402, 408, 409, 425, 429]);

interface Outage {
  outage: string;
  /** As long as the provider asked for; 0 where it did not. */
  retryAfterMs: number;
}

type Trial = { answer: JudgeAnswer } | Outage;

export async function askPatiently(
  judge: Judge,
  messages: readonly JudgeMessage[],
  patience: Patience,
): Promise<JudgeAnswer> {
  const start = Date.now();
  const first = await tryOnce(judge, messages, patience);
  if ('answer' in first) return first.answer;
  patience.outage.began(first.outage, start);
  try {
    return await outlast(judge, messages, patience, first);
  } finally {
    patience.outage.ended();
  }
}

async function outlast(
  judge: Judge,
  messages: readonly JudgeMessage[],
  patience: Patience,
  first: Outage,
): Promise<JudgeAnswer> {
  const { callRetryBudgetMs, outage, signal } = patience;
  const end = Date.now() + callRetryBudgetMs;
  let trial: Trial = first;
  for (let wait = FIRST_WAIT_MS; 'outage' in trial; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    const leftMs = end - Date.now();
    if (leftMs <= 0 || trial.retryAfterMs > leftMs) throw exhausted(judge, callRetryBudgetMs, trial);
    const waitMs = Math.max(Math.min(wait, leftMs), trial.retryAfterMs);
    outage.goesOn(trial.outage, Date.now() + waitMs);
    await sleep(waitMs, undefined, { signal });
    trial = await tryOnce(judge, messages, patience);
  }
  return trial.answer;
}

async function tryOnce(judge: Judge, messages: readonly JudgeMessage[], patience: Patience): Promise<Trial> {
  const { callTimeoutMs, signal, checkFresh } = patience;
  checkFresh();
  try {
    return { answer: await judge.ask(messages, { timeoutMs: callTimeoutMs, signal }) };
  } catch (error) {
    if (error instanceof TemperError || signal.aborted) throw error;
    return readFailure(judge, error);
  }
}

/** The judge cannot read so much; shorter attempts may do. */
export class PromptTooLong extends Error {
  override readonly name = 'PromptTooLong';
}

const TOO_LONG =
  /context[ _]length|context window|maximum context|too (?:long|large|many tokens)|exceeds? .{0,40}tokens/i;

function isTooLong(status: number, said: string, code: unknown): boolean {
  return status === 413 || (status === 400 && (code === 'context_length_exceeded' || TOO_LONG.test(said)));
}

function readFailure(judge: Judge, error: unknown): Outage {
  const status = error instanceof APIError ? (error.status as number | undefined) : undefined;
  if (status === undefined) return { outage: describe(error), retryAfterMs: 0 };
  const headers = (error as { headers?: Headers }).headers;
  const said = describe(error);
  if (status >= 500 || OUTAGE_STATUSES.has(status))
    return { outage: said, retryAfterMs: parseRetryAfter(headers?.get('retry-after') ?? null) };
  if (isTooLong(status, said, (error as { code?: unknown }).code)) throw new PromptTooLong(said);
  throw new TemperError(
    'BadConfig',
    `the judge ${judge.name} refused with ${said}; ${REMEDIES[status] ?? OTHER_REMEDY}`,
  );
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
function exhausted({ name }: Judge, budgetMs: number, { outage, retryAfterMs }: Outage): TemperError {
  const message = `the judge ${name} did not answer a call within its retry budget of ${budgetMs} ms (last: ${outage})`;
  return new TemperError('JudgeFailed', `${message}; what it answered before is kept`, { retryAfterMs });
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
