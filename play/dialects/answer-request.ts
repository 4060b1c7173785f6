/**
 * A request in any dialect, answered: what each transport does between its bytes and the recorder. It decides nothing
 * about the attempt.
 */
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { Completion } from '../connections/completion.ts';
import type { CallOptions } from '../recorder/recorder.ts';
import { RequestRefused } from '../connections/ask-model.ts';
import { type Dialect, type Memory, type ParsedCall, KEEP_ALIVE } from './dialect.ts';
import type { AskedRequest } from '../recorder/canonical.ts';
import { chat } from './chat.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';

export interface ModelRequest {
  /** Path of the URL, without the query. */
  path: string;
  headers: Pick<Headers, 'get'>;
  body: string;
  /** Aborted when the client gives the request up. */
  signal: AbortSignal | null;
}

/** `recorder`, or what answers in its place. */
export interface Answerer {
  /** Called before anything is awaited: the order in which requests arrive decides which is which. */
  call(asked: AskedRequest, options: CallOptions): Promise<Completion>;
  /** Returns the error to answer to an unreadable request. */
  refuse(error: unknown): Promise<unknown>;
}

export type ModelReply = { status: number; headers: Record<string, string> } & (
  | { json: object }
  | { events: AsyncIterable<string> }
);

export interface AnswerOptions {
  memory: Memory;
  /** A stream that waits for longer is opened, and says so as often; by default 5 seconds. */
  keepAliveMs?: number;
}

/** Tells identical calls made in parallel apart; see `label` in the SDK. */
export const LABEL_HEADER = 'x-temper-label';
/** With it, OpenAI's and Anthropic's clients mark a request that they send again. */
const RETRY_HEADER = 'x-stainless-retry-count';

const KEEP_ALIVE_MS = 5000;
const JSON_HEADERS = { 'content-type': 'application/json' };
const EVENT_HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };
/** 400 is the only status after which no client library tries again by itself; some also look at the header. */
const REFUSED = { status: 400, headers: { ...JSON_HEADERS, 'x-should-retry': 'false' } };

/** Rejects only if the client gave the request up, with its reason. */
export async function answerRequest(
  request: ModelRequest,
  answerer: Answerer,
  { memory, keepAliveMs = KEEP_ALIVE_MS }: AnswerOptions,
): Promise<ModelReply> {
  const answer = new Answer(request, keepAliveMs);
  try {
    const call = parse(request, memory);
    const completion = answer.ask(call, answerer, memory);
    return await (call.isStreamed ? answer.stream(completion, call) : answer.whole(completion, call));
  } catch (error) {
    return answer.refuse(error instanceof Unreadable ? await answerer.refuse(error.cause) : error);
  }
}

/** A request that never comes to the recorder. */
class Unreadable extends Error {}

function parse({ path, body }: ModelRequest, memory: Memory): ParsedCall {
  try {
    const dialect = findDialect(path);
    if (dialect === null) throw unsupported(path);
    return dialect.parse(body, memory);
  } catch (cause) {
    throw new Unreadable('a request that cannot be read', { cause });
  }
}

class Answer {
  readonly #dialect: Dialect;
  readonly #headers: ModelRequest['headers'];
  readonly #keepAliveMs: number;
  readonly #cancelled = new AbortController();
  #signal: AbortSignal | null;

  constructor({ path, headers, signal }: ModelRequest, keepAliveMs: number) {
    this.#dialect = findDialect(path) ?? DEFAULT_DIALECT;
    this.#headers = headers;
    this.#signal = signal;
    this.#keepAliveMs = keepAliveMs;
  }

  async ask(call: ParsedCall, answerer: Answerer, memory: Memory): Promise<Completion> {
    const label = this.#headers.get(LABEL_HEADER);
    const isRepeated = Number(this.#headers.get(RETRY_HEADER) ?? 0) > 0;
    const { isStreamed, boundsTokens = false } = call;
    if (isStreamed) this.#signal = AbortSignal.any([this.#cancelled.signal, ...[this.#signal ?? []].flat()]);
    const options = { label, signal: this.#signal, isRepeated, boundsTokens };
    const completion = await answerer.call(call.asked, options);
    this.#dialect.keep?.(completion, call, memory);
    return completion;
  }

  async whole(completion: Promise<Completion>, call: ParsedCall): Promise<ModelReply> {
    return { status: 200, headers: JSON_HEADERS, json: this.#dialect.write(await completion, call) };
  }

  /** The finished answer, told in pieces: a repetition tells the same. An error that comes at once still has a status. */
  async stream(completion: Promise<Completion>, call: ParsedCall): Promise<ModelReply> {
    if (await isSettled(completion, this.#keepAliveMs)) await completion;
    const events = cancellable(this.#tell(completion, call), this.#cancelled);
    return { status: 200, headers: EVENT_HEADERS, events };
  }

  refuse(error: unknown): ModelReply {
    return { ...REFUSED, json: this.#dialect.writeError(this.#read(error)) };
  }

  async *#tell(answering: Promise<Completion>, call: ParsedCall): AsyncGenerator<string> {
    while (!(await isSettled(answering, this.#keepAliveMs))) yield KEEP_ALIVE;
    const told = await answering.then(
      (completion) => this.#dialect.events(completion, call),
      (error: unknown) => [this.#dialect.errorEvent(this.#read(error))],
    );
    for (const event of told) {
      this.#signal?.throwIfAborted();
      yield event;
    }
  }

  /** The client raises its own error class for the status, with this message. */
  #read(error: unknown) {
    if (error instanceof RequestRefused) return error.error;
    if (error instanceof TemperError) return { message: error.message, type: error.type, code: null, param: null };
    // The agent itself aborted the call, and its client reports that.
    this.#signal?.throwIfAborted();
    throw error;
  }
}

/** A client that stops reading cancels the call, even while a read is waiting. */
function cancellable(events: AsyncGenerator<string>, cancelled: AbortController): AsyncIterable<string> {
  const iterator: AsyncIterator<string> = {
    next: () => events.next(),
    return: () => {
      cancelled.abort();
      return events.return(undefined);
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

function isSettled(promise: Promise<unknown>, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), withinMs);
    const settle = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    promise.then(settle, settle);
  });
}

function unsupported(path: string): TemperError {
  const paths = DIALECTS.map((dialect) => dialect.path).join(' or ');
  const rule = `a model call must be a POST to ${paths} below /v1`;
  return badConfig(`${rule}, got a request to ${path}; call the model, or use the global fetch`);
}

/** To add a dialect, whose path is fixed, add a file beside `chat.ts` and list it here: every transport then answers it. */
const DIALECTS: readonly Dialect[] = [chat, responses, messages];

/** Finds the dialect of a URL's path, with or without `/v1` before it. Null if the recorder does not answer there. */
export function findDialect(path: string): Dialect | null {
  return DIALECTS.find((dialect) => path === dialect.path || path.endsWith(`/v1${dialect.path}`)) ?? null;
}

/** The format of errors at other URLs. */
export const DEFAULT_DIALECT: Dialect = chat;
