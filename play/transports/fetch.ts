/**
 * A `fetch` that calls the recorder instead of the network, for SDKs that accept one. A transport finds the dialect of a
 * request, passes the request to `recorder.call` and writes the answer. It decides nothing about the attempt.
 */
import { TemperError } from '../../core/failures.ts';
import type { Completion } from '../recorder/answer.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { DEFAULT_DIALECT, findDialect } from '../dialects/find-dialect.ts';
import type { Recorder } from '../recorder/recorder.ts';
import type { AskedRequest } from '../recorder/request.ts';
import { RequestRefused } from '../recorder/send.ts';
import { jsonReply } from './reply.ts';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Tells identical calls made in parallel apart; see `label` in the SDK. */
export const LABEL_HEADER = 'x-temper-label';

export function createFetch(recorder: Recorder): Fetch {
  return async (url, init) => {
    const dialect = findDialect(url);
    try {
      return jsonReply(200, (dialect ?? DEFAULT_DIALECT).write(await answer(recorder, dialect, url, init)));
    } catch (error) {
      return tellError(error, dialect ?? DEFAULT_DIALECT);
    }
  };
}

async function answer(
  recorder: Recorder,
  dialect: Dialect | null,
  url: string,
  init: RequestInit,
): Promise<Completion> {
  let asked: AskedRequest;
  try {
    if (dialect === null || typeof init.body !== 'string') throw unsupported(url);
    asked = dialect.parse(init.body);
  } catch (error) {
    throw await recorder.refuse(error);
  }
  return recorder.call(asked, { label: labelOf(init.headers), signal: init.signal ?? null });
}

/** The client raises its own error class for the status, with this message. */
function tellError(error: unknown, dialect: Dialect): Response {
  if (error instanceof RequestRefused) return jsonReply(error.status, dialect.writeError(error.error));
  // The agent itself aborted the call, and its client reports that.
  if (!(error instanceof TemperError)) throw error;
  const { message, type, retryable } = error;
  return jsonReply(retryable ? 503 : 400, dialect.writeError({ message, type, code: null, param: null }));
}

function labelOf(headers: RequestInit['headers']): string | null {
  return (headers instanceof Headers ? headers : new Headers(headers)).get(LABEL_HEADER);
}

function unsupported(url: string): TemperError {
  const { pathname } = new URL(url);
  const rule = 'the recorder supports only openai.chat.completions.create in this version';
  return new TemperError('BadConfig', `${rule}, got a request to ${pathname}; use chat completions`);
}
