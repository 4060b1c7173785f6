import OpenAI, { type ClientOptions } from 'openai';

import type { Answerer } from '../dialects/answer-request.ts';
import { createFetch, type Fetch } from './fetch.ts';

/** A model, ready for the official client or for any other SDK. */
export interface ModelClient {
  /** The official client, pointed at the model. */
  openai: OpenAI;
  /** To be passed as `model`. */
  model: string;
  /** Answers the calls of any other SDK, in place of the global fetch: chat completions, responses and messages. */
  fetch: Fetch;
  /** For the same SDK. It ends in `/v1`; a client that adds that itself may get it too. */
  baseURL: string;
  /** For SDKs that require one; a hosted model's own key stays in the environment. */
  apiKey: string;
}

/** Nobody checks it: calls do not leave the process. */
const API_KEY = 'temper';

/** `owner` names it in messages. */
export function createModelClient(
  answerer: Answerer,
  { model, baseURL, owner }: { model: string; baseURL: string; owner?: string },
): ModelClient {
  const address = { baseURL, apiKey: API_KEY };
  const fetch = createFetch(answerer, baseURL, owner);
  return { openai: createOpenAIClient(address, fetch), model, fetch, ...address };
}

/** The client's own timer must not end a call that its caller waits for. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

/** The official client, with `fetch` in place of the network. It does not retry: `retryCall` does. */
export function createOpenAIClient(options: ClientOptions, fetch: Fetch): OpenAI {
  return new OpenAI({ ...options, maxRetries: 0, timeout: NO_TIMEOUT_MS, fetch });
}

export function addressOf(url: string | URL | Request): string {
  return url instanceof Request ? url.url : url.toString();
}
