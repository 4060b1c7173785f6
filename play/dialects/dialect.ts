import type { Completion } from '../connections/completion.ts';
import type { AskedRequest } from '../recorder/canonical.ts';

/**
 * A wire format in which an agent may call the model. The recorder itself uses the terms of chat completions, and a
 * dialect translates to and from them. What is allowed and what is recorded does not depend on the dialect.
 */
export interface Dialect {
  /** The end of the URL of a request in this format, after `/v1`. */
  readonly path: string;
  /** Throws BadConfig for requests that the recorder cannot answer. */
  parse(body: string, memory: Memory): ParsedCall;
  write(completion: Completion, call: ParsedCall): object;
  /** The same answer as server-sent events, each with its blank line; see `writeEvent`. */
  events(completion: Completion, call: ParsedCall): Iterable<string>;
  writeError(error: DialectError): object;
  /** An error after a stream has begun. */
  errorEvent(error: DialectError): string;
  /** Keeps what a later request may refer to by an id. */
  keep?(completion: Completion, call: ParsedCall, memory: Memory): void;
}

/** The arguments and the result of a model activity of an SDK on Temporal, in place of a request and its answer. */
export type ActivityDialect = Pick<Dialect, 'parse' | 'keep'> & {
  /** The activity's result; the list of events where it streams. */
  write(completion: Completion, call: ParsedCall): object;
};

export interface ParsedCall {
  /** In the terms of chat completions. */
  readonly asked: AskedRequest;
  readonly isStreamed: boolean;
  /** The client's body without nulls: answers repeat some of it. */
  readonly body: RequestBody;
  /** The format requires a token limit, so clients send one that nobody chose: the run's own limit bounds it. */
  readonly boundsTokens?: boolean;
}

/** Answers of an attempt by their ids. One for each attempt; a journal replay fills it again. */
export interface Memory {
  get(id: string): readonly object[] | undefined;
  set(id: string, items: readonly object[], kept?: Kept): unknown;
}

/** For a memory that outlives an attempt. */
export interface Kept {
  /** Under the answer's own id: all of it, as the client was told. */
  readonly answer?: object | null;
  /** False where the client asks that nothing be stored. */
  readonly isStored?: boolean;
}

export interface DialectError {
  readonly message?: unknown;
  readonly type?: unknown;
  readonly code?: unknown;
  readonly param?: unknown;
}

export type RequestBody = Readonly<Record<string, unknown>>;

/** `event` is absent in formats whose events say their type in the data alone. */
export function writeEvent(data: object | string, event?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`;
}

/** A comment: clients skip it, and their timers begin anew. */
export const KEEP_ALIVE = ': waiting\n\n';
