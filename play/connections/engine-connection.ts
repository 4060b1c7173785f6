/**
 * One kept-alive pool of connections to an engine. undici's dispatcher is used below its `fetch` and `request`: a call
 * costs a quarter of the processor time, and a step makes hundreds.
 */
import { Pool, type Dispatcher } from 'undici';

import { withoutSlash } from '../../core/names/addresses.ts';
import { ENGINE_KEY_VARIABLE, MAX_ANSWER_BYTES } from '../../core/contract/wire-constants.ts';

export interface EngineAddress {
  /** `http://host:port`, with or without `/v1`. */
  url: string;
  /** Sent as bearer token; never logged. Null sends none. */
  key: string | null;
  /** The URL is a hosted API's base as it stands (`https://host/v1beta/openai`): nothing but the endpoint is added. */
  isBaseUrl?: boolean;
  /** The key's environment variable, for messages; absent: the engine's own. */
  keyVariable?: string | null;
  /** Sent with each call. */
  headers?: Readonly<Record<string, string>>;
}

export interface HttpAnswer {
  status: number;
  retryAfter: string | null;
  text: string;
}

interface PostOptions {
  headers: Record<string, string>;
  deadlineMs: number;
  signals: readonly AbortSignal[];
}

export interface EngineConnection {
  readonly url: string;
  readonly keyVariable: string | null;
  /** Rejects where there was no complete answer: refused, cut, out of time, aborted. */
  post(body: string, options: PostOptions): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/** More calls than this wait for a free connection; engines batch fewer. */
const MAX_CONNECTIONS = 256;
const PATH = '/chat/completions';

export function connectEngine({
  url,
  key,
  isBaseUrl,
  keyVariable,
  headers: own = {},
}: EngineAddress): EngineConnection {
  const { base, path } = placeOf({ url, isBaseUrl });
  const pool = new Pool(base.origin, { connections: MAX_CONNECTIONS, headersTimeout: 0, bodyTimeout: 0 });
  const common: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json', ...own };
  if (key !== null) common['authorization'] = `Bearer ${key}`;
  return {
    url: withoutSlash(base.href),
    keyVariable: keyVariable === undefined ? ENGINE_KEY_VARIABLE : keyVariable,
    post: (body, options) =>
      new Promise((resolve, reject) => {
        const exchange = new Exchange(resolve, reject, options);
        const headers = { ...common, ...options.headers };
        pool.dispatch({ method: 'POST', path, headers, body }, exchange.handler);
      }),
    close: () => pool.destroy(),
  };
}

/** Endpoint of chat completions at an address. */
export function chatUrl(address: EngineAddress): URL {
  const { base, path } = placeOf({ url: address.url, isBaseUrl: address.isBaseUrl });
  return new URL(path, base.origin);
}

function placeOf({ url, isBaseUrl }: Pick<EngineAddress, 'url'> & { isBaseUrl: boolean | undefined }) {
  const base = new URL(isBaseUrl ? url : withoutSlash(url).replace(/\/v1$/, ''));
  return { base, path: `${withoutSlash(base.pathname)}${isBaseUrl ? '' : '/v1'}${PATH}` };
}

class Exchange {
  readonly handler: Dispatcher.DispatchHandler;
  readonly #resolve: (answer: HttpAnswer) => void;
  readonly #reject: (error: Error) => void;
  readonly #signals: readonly AbortSignal[];
  readonly #timer: NodeJS.Timeout;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | null = null;
  #numBytes = 0;
  #status = 0;
  #retryAfter: string | null = null;
  #settled = false;

  constructor(resolve: (answer: HttpAnswer) => void, reject: (error: Error) => void, options: PostOptions) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signals = options.signals;
    this.#timer = setTimeout(() => this.#abort(`no answer within ${options.deadlineMs} ms`), options.deadlineMs);
    for (const signal of this.#signals) signal.addEventListener('abort', this.#onAbort);
    this.handler = this.#createHandler();
    if (this.#signals.some((signal) => signal.aborted)) this.#onAbort();
  }

  #createHandler(): Dispatcher.DispatchHandler {
    return {
      onRequestStart: (controller) => {
        if (this.#settled) controller.abort(new Error('not wanted any more'));
        this.#controller = controller;
      },
      onResponseStart: (_controller, status, headers) => {
        this.#status = status;
        const retryAfter = headers['retry-after'];
        this.#retryAfter = typeof retryAfter === 'string' ? retryAfter : null;
      },
      onResponseData: (_controller, chunk) => this.#collect(chunk),
      onResponseEnd: () => this.#succeed(),
      onResponseError: (_controller, error) => this.#fail(error),
    };
  }

  #collect(chunk: Buffer): void {
    this.#numBytes += chunk.length;
    if (this.#numBytes <= MAX_ANSWER_BYTES) this.#chunks.push(chunk);
    else this.#abort(`an answer of more than ${MAX_ANSWER_BYTES / 1024 ** 2} MiB`);
  }

  readonly #onAbort = (): void => this.#abort('aborted');

  #abort(reason: string): void {
    const error = new Error(reason);
    this.#fail(error);
    this.#controller?.abort(error);
  }

  #succeed(): void {
    if (!this.#settle()) return;
    const [only] = this.#chunks;
    const bytes = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    this.#resolve({ status: this.#status, retryAfter: this.#retryAfter, text: bytes.toString('utf8') });
  }

  #fail(error: Error): void {
    if (this.#settle()) this.#reject(error);
  }

  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#timer);
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#onAbort);
    return true;
  }
}
