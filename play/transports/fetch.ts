/** A `fetch` that calls the recorder instead of the network, for SDKs that accept one. */
import { badConfig } from '../../core/contract/failures.ts';
import { answerRequest, type Answerer, type ModelReply } from '../dialects/answer-request.ts';
import type { Memory } from '../dialects/dialect.ts';

export type Fetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** `baseURL`: requests elsewhere are refused; null answers at any address. `owner` has both, for messages. */
export function createFetch(answerer: Answerer, baseURL: string | null = null, owner = 'context'): Fetch {
  const memory: Memory = new Map();
  return async (input, init = {}) => {
    const {
      url,
      headers,
      body: given,
      signal,
    } = input instanceof Request ? fromRequest(input, init) : fromInit(input, init);
    // A string is not waited for: the order in which requests come decides which is which.
    // oxlint-disable-next-line temper/bounded-answer -- what the agent itself sends
    const body = typeof given === 'string' ? given : await new Response(given).text();
    const own = baseURL === null || isBelow(url, baseURL) ? answerer : refuseAll(answerer, url, baseURL, owner);
    return asResponse(await answerRequest({ path: url.pathname, headers, body, signal }, own, { memory }));
  };
}

function fromInit(url: string | URL, { headers, body, signal }: RequestInit) {
  return { url: new URL(url), headers: new Headers(headers), body: body ?? '', signal: signal ?? null };
}

function fromRequest(request: Request, init: RequestInit) {
  const { url, headers, body, signal } = request;
  return fromInit(url, { headers, body, signal, ...init });
}

/** Some clients are given the address without `/v1`. */
function isBelow(url: URL, baseURL: string): boolean {
  return url.href.startsWith(`${baseURL.replace(/\/v1$/, '')}/`);
}

function refuseAll(answerer: Answerer, { origin, pathname }: URL, baseURL: string, owner: string): Answerer {
  const refuse = (): Promise<unknown> => {
    const rule = `${owner}.fetch answers model calls below ${owner}.baseURL ${baseURL}`;
    const remedy = `pass baseURL: ${owner}.baseURL to the client, and use the global fetch for anything else`;
    return answerer.refuse(badConfig(`${rule}, got a request to ${origin}${pathname}; ${remedy}`));
  };
  return { call: async () => Promise.reject(await refuse()), refuse };
}

function asResponse(reply: ModelReply): Response {
  const { status, headers } = reply;
  if ('json' in reply) return new JsonResponse(reply.json, { status, headers });
  return new Response(ReadableStream.from(reply.events).pipeThrough(new TextEncoderStream()), { status, headers });
}

/** The body is not parsed again, and what an object carries besides JSON stays on it; see `Turns.mark`. */
class JsonResponse extends Response {
  override readonly json: () => Promise<unknown>;

  constructor(json: object, init: ResponseInit) {
    super(JSON.stringify(json), init);
    this.json = () => Promise.resolve(json);
  }
}
