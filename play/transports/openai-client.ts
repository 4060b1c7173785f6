import OpenAI, { type ClientOptions } from 'openai';

import type { Fetch } from './fetch.ts';

/** The client's own timer must not end a call that its caller waits for. */
export const NO_TIMEOUT_MS = 2 ** 31 - 1;

/** The official client, with `fetch` in place of the network. It does not retry: `retryCall` does. */
export function createOpenAIClient(options: ClientOptions, fetch: Fetch): OpenAI {
  return new OpenAI({ ...options, maxRetries: 0, timeout: NO_TIMEOUT_MS, fetch });
}

export function addressOf(url: string | URL | Request): string {
  return url instanceof Request ? url.url : url.toString();
}
