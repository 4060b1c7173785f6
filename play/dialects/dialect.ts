import type { Completion } from '../recorder/answer.ts';
import type { AskedRequest } from '../recorder/request.ts';

/**
 * A wire format in which an agent may call the model. The recorder itself uses the terms of chat completions, and a
 * dialect translates to and from them. What is allowed and what is recorded does not depend on the dialect.
 */
export interface Dialect {
  /** The end of the URL of a request in this format. */
  readonly path: string;
  /** Throws BadConfig for requests that the recorder cannot answer. */
  parse(body: string): AskedRequest;
  write(completion: Completion): object;
  writeError(error: DialectError): object;
}

interface DialectError {
  readonly message?: unknown;
  readonly type?: unknown;
  readonly code?: unknown;
  readonly param?: unknown;
}
