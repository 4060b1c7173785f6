/**
 * Calls of clients that know nothing of an attempt: made once, for a hosted model, by code that is shared by all attempts.
 * The global `fetch` finds out which attempt it is called for, and brings the call to its recorder.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

import { parseJson } from '../../core/text/json-text.ts';
import { findDialect } from '../dialects/answer-request.ts';
import type { Fetch } from './fetch.ts';

interface Capture {
  /** Model that the code asks for: only these calls are the attempt's. */
  asked: string;
  /** The policy that answers. */
  model: string;
  baseURL: string;
  fetch: Fetch;
}

const capturing = new AsyncLocalStorage<Capture>();
let isPatched = false;

export function captureAs<T>(capture: Capture, play: () => T): T {
  patchGlobalFetch();
  return capturing.run(capture, play);
}

/** Before an agent is imported: some clients take the global `fetch` when they are made. */
export function patchGlobalFetch(): void {
  if (isPatched) return;
  isPatched = true;
  const network = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const capture = capturing.getStore();
    return capture === undefined ? network(input, init) : passOn(capture, network, input, init);
  };
}

/** A text is not waited for: the order in which calls are made decides which is which. */
async function passOn({ asked, model, baseURL, fetch }: Capture, network: Fetch, ...call: Parameters<Fetch>) {
  const [input, init] = call;
  const dialect = findDialect(new URL(input instanceof Request ? input.url : input).pathname);
  if (dialect === null) return network(...call);
  const isText = !(input instanceof Request) && isTextual(init?.body);
  // Of any other body, such as a stream, a copy is read: the network may get the request.
  const request = isText ? null : new Request(input, { ...init, duplex: 'half' });
  const given = request === null ? init : await read(request);
  const body = parseJson(textOf(given?.body)) as { model?: unknown } | null | undefined;
  if (body?.model !== asked) return request === null ? network(...call) : network(request);
  return fetch(`${baseURL}${dialect.path}`, { ...given, method: 'POST', body: JSON.stringify({ ...body, model }) });
}

async function read(request: Request): Promise<RequestInit> {
  const { headers, signal } = request;
  // oxlint-disable-next-line temper/bounded-answer -- what the agent itself sends
  return { headers, signal, body: await request.clone().text() };
}

function isTextual(body: RequestInit['body']): boolean {
  return body == null || typeof body === 'string' || body instanceof Uint8Array;
}

function textOf(body: RequestInit['body']): string {
  if (typeof body === 'string') return body;
  return body instanceof Uint8Array ? Buffer.from(body).toString() : '';
}
