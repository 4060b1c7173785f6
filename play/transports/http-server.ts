/** Shared parts of Temper's HTTP servers: keys, hosts, bounded reading of requests, writing of replies. */
import { isUtf8 } from 'node:buffer';
import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, ListenOptions, Server } from 'node:net';
import { LOOPBACK_NAMES } from '../../core/names/addresses.ts';
import { type FailureType, TemperError, WorkFailed } from '../../core/contract/failures.ts';
import { BODY_TOO_LARGE, INTERNAL_ERROR, MAX_BODY_BYTES, MAX_DEPTH } from '../../core/contract/wire-constants.ts';
import type { ModelReply } from '../dialects/answer-request.ts';

/** A client sees a refusal only once all that it sends was taken; for this much it is. */
const MAX_SENT_BYTES = 256 * 1024 ** 2;

/** A request that no dialect gets to see. */
export class HttpRefusal extends Error {
  readonly status: number;
  readonly code: string | null;

  constructor(status: number, message: string, code: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** The error in OpenAI's form. */
  get error(): { message: string; type: string; code: string | null; param: null } {
    const type =
      this.status === 401 ? 'authentication_error' : this.status >= 500 ? 'server_error' : 'invalid_request_error';
    return { message: this.message, type, code: this.code, param: null };
  }
}

const STATUS: Partial<Record<FailureType, number>> = {
  BadConfig: 422,
  StoreUnavailable: 503,
  SourceUnavailable: 503,
  StoreCorrupt: 500,
  StepConflict: 409,
  LaterVersion: 409,
};

/** Any error as an answer of `command`, with nothing of the machine for an error that nobody expected. */
export function refusalOf(error: unknown, command: string): HttpRefusal {
  if (error instanceof HttpRefusal) return error;
  if (error instanceof WorkFailed) return new HttpRefusal(409, error.message, 'failed');
  if (error instanceof TemperError && STATUS[error.type] !== undefined)
    return new HttpRefusal(STATUS[error.type]!, error.message, error.type);
  console.error(error);
  return new HttpRefusal(500, `${command} failed on this request; its terminal says more`, INTERNAL_ERROR);
}

/** Resolves to the port. */
export async function listen(server: Server, options: ListenOptions): Promise<number> {
  await once(server.listen(options), 'listening');
  return (server.address() as AddressInfo).port;
}

/** Values of the `host` header by which this machine reaches a port of its own. */
export function loopbackHosts(port: number): string[] {
  return LOOPBACK_NAMES.map((name) => `${name.includes(':') ? `[${name}]` : name}:${port}`);
}

/** Compared in constant time, whatever their lengths. */
export function isSameSecret(given: string, secret: string): boolean {
  const [left, right] = [given, secret].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(left!, right!);
}

/** The key that OpenAI's or Anthropic's clients send; empty if there is none. */
export function keyOf({ authorization = '', 'x-api-key': key }: IncomingHttpHeaders): string {
  const bearer = /^bearer /i.test(authorization) ? authorization.slice('bearer '.length).trim() : '';
  return bearer || (typeof key === 'string' ? key : '');
}

/** Those that were sent once. */
function headersOf({ headers }: IncomingMessage): Headers {
  const single = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' ? [[name, value]] : [],
  );
  return new Headers(single);
}

/** Room for the bodies of requests that are answered at the same time. */
export class BodyRoom {
  readonly #maxBytes: number;
  readonly #maxBodyBytes: number;
  #heldBytes = 0;

  /** `maxBytes`: of all bodies together. */
  constructor(maxBytes: number, maxBodyBytes: number = MAX_BODY_BYTES) {
    this.#maxBytes = maxBytes;
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** A body is held until `answer` has ended, which may be a stream that has just begun. */
  async hold(
    request: IncomingMessage,
    answer: (asked: { headers: Headers; body: string }) => Promise<void>,
  ): Promise<void> {
    let held = 0;
    const hasRoom = (bytes: number): boolean => {
      held += bytes;
      this.#heldBytes += bytes;
      return this.#heldBytes <= this.#maxBytes;
    };
    try {
      await answer({ headers: headersOf(request), body: await readBody(request, this.#maxBodyBytes, hasRoom) });
    } finally {
      this.#heldBytes -= held;
    }
  }
}

/** `hold` is told of each piece that is kept, and says whether there is room for it. */
async function readBody(request: IncomingMessage, maxBytes: number, hold: (bytes: number) => boolean): Promise<string> {
  const chunks: Buffer[] = [];
  let sent = 0;
  let hasRoom = true;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sent += chunk.length;
    if (sent > MAX_SENT_BYTES) break;
    if (sent <= maxBytes && hasRoom) hasRoom = hold(chunk.length);
    if (sent <= maxBytes && hasRoom) chunks.push(chunk);
    else chunks.length = 0;
  }
  if (sent > maxBytes)
    throw new HttpRefusal(
      413,
      `a request may have ${maxBytes} bytes, this one has more; shorten ${maxBytes === MAX_BODY_BYTES ? 'the conversation' : 'it'}`,
      BODY_TOO_LARGE,
    );
  if (!hasRoom) throw new HttpRefusal(429, 'too many long requests at once; send fewer');
  const body = Buffer.concat(chunks);
  // Read as text, it would say something else than what was sent.
  if (!isUtf8(body)) throw new HttpRefusal(400, 'a body must be JSON in UTF-8, this one is not; encode it as UTF-8');
  if (isDeeper(body, MAX_DEPTH))
    throw new HttpRefusal(400, `a body may be nested ${MAX_DEPTH} levels deep, this one is deeper; make it flatter`);
  return body.toString('utf8');
}

const [QUOTE, BACKSLASH] = Buffer.from('"\\');
const OPENING: readonly number[] = [...Buffer.from('[{')];
const CLOSING: readonly number[] = [...Buffer.from(']}')];

/** What reads or writes a value level by level would fail on it. */
function isDeeper(json: Buffer, most: number): boolean {
  let depth = 0;
  let isInText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]!;
    if (byte === QUOTE) isInText = !isInText;
    else if (isInText) at += byte === BACKSLASH ? 1 : 0;
    else if (OPENING.includes(byte)) depth += 1;
    else if (CLOSING.includes(byte)) depth -= 1;
    if (depth > most) return true;
  }
  return false;
}

/** Takes what a refused client still sends. */
export async function discardBody(request: IncomingMessage): Promise<void> {
  let sent = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      sent += chunk.length;
      if (sent > MAX_SENT_BYTES) break;
    }
  } catch {
    // The client is gone.
  }
}

/** In OpenAI's form. */
export function writeRefusal({ status, error }: HttpRefusal, response: ServerResponse, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify({ error }));
}

/** No faster than its client reads. */
export async function writeReply(response: ServerResponse, reply: ModelReply): Promise<void> {
  response.writeHead(reply.status, reply.headers);
  if ('json' in reply) {
    response.end(JSON.stringify(reply.json));
    return;
  }
  for await (const event of reply.events) {
    if (!response.write(event)) await drained(response);
    if (response.destroyed) return;
  }
  response.end();
}

/** Or closed: then nothing is ever drained. */
async function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  const done = new AbortController();
  const { signal } = done;
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  } finally {
    done.abort();
  }
}
