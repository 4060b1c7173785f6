import type { Completion } from '../answer.ts';
import type { AskedRequest } from '../request.ts';

/**
 * A wire format in which an agent may ask. The recorder's own terms are those of chat completions, so a dialect only
 * translates: what may be asked, and what is recorded, is the same in all of them.
 */
export interface Dialect {
  /** How the address of a request in this format ends. */
  readonly path: string;
  /** Throws BadConfig for what the recorder cannot answer. */
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
