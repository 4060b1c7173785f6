import { chat } from './chat.ts';
import type { Dialect } from './dialect.ts';

/** To add a dialect, write a file beside `chat.ts` and name it here: every transport then answers it. */
const DIALECTS: readonly Dialect[] = [chat];

/** Null where the recorder does not answer at this address. */
export function findDialect(url: string): Dialect | null {
  return DIALECTS.find(({ path }) => url.endsWith(path)) ?? null;
}

/** What an address without a dialect is answered in. */
export const DEFAULT_DIALECT: Dialect = chat;
