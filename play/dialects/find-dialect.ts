import { chat } from './chat.ts';
import type { Dialect } from './dialect.ts';

/** To add a dialect, add a file beside `chat.ts` and list it here: every transport then answers it. */
const DIALECTS: readonly Dialect[] = [chat];

/** Null if the recorder does not answer at this URL. */
export function findDialect(url: string): Dialect | null {
  return DIALECTS.find(({ path }) => url.endsWith(path)) ?? null;
}

/** The format of errors at other URLs. */
export const DEFAULT_DIALECT: Dialect = chat;
