import OpenAI, { type ClientOptions } from 'openai';

import type { Fetch } from './fetch.ts';

/** The client has a timer of its own; the deadlines of whoever answers are the ones that count. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

/** The official client, with `fetch` in place of the network. It retries nothing: the recorder does. */
export function createOpenAIClient(options: ClientOptions, fetch: Fetch): OpenAI {
  return new OpenAI({
    ...options,
    maxRetries: 0,
    timeout: NO_TIMEOUT_MS,
    fetch: (url, init) => fetch(url instanceof Request ? url.url : url.toString(), init ?? {}),
  });
}
