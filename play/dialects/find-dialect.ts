import { chat } from './chat.ts';
import type { Dialect } from './dialect.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';

/** To add a dialect, whose path is fixed, add a file beside `chat.ts` and list it here: every transport then answers it. */
export const DIALECTS: readonly Dialect[] = [chat, responses, messages];

/** Finds the dialect of a URL's path, with or without `/v1` before it. Null if the recorder does not answer there. */
export function findDialect(path: string): Dialect | null {
  return DIALECTS.find((dialect) => path === dialect.path || path.endsWith(`/v1${dialect.path}`)) ?? null;
}

/** The format of errors at other URLs. */
export const DEFAULT_DIALECT: Dialect = chat;
