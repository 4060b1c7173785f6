/** Clients of the soak: each request ends as an outcome, whatever the server does. */
import { request, type Agent, type ClientRequest, type IncomingMessage } from 'node:http';

/** `lost`: no whole answer, though the client stayed; `hung`: none in time; `left`: the client hung up. */
export type Ending = number | 'lost' | 'hung' | 'left';

export interface Outcome {
  readonly ending: Ending;
  /** Its end, if it is long. */
  readonly text: string;
  /** Until the first byte of the answer's body; null if there was none. */
  readonly firstMs: number | null;
  readonly sentBytes: number;
}

export interface Ask {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  /** A generator is sent in chunks, as fast as the server takes them. */
  readonly body?: string | Buffer | (() => Iterable<Buffer>);
  /** Limit after which a request counts as stuck. */
  readonly withinMs?: number;
  /** Reader of the answer; by default it reads all. */
  readonly listen?: (response: IncomingMessage, asking: ClientRequest) => void;
  /** The client hangs up by then. */
  readonly leaveAfterMs?: number;
  /** Connections that are kept; by default each request has one of its own. */
  readonly agent?: Agent;
}

export type Client = (ask: Ask) => Promise<Outcome>;

const CHAT = '/v1/chat/completions';
const WITHIN_MS = 300_000;
const KEPT_CHUNKS = 8;

export function createClient(port: number, key: string): Client {
  return (ask) => new Exchange(port, key, ask).outcome;
}

class Exchange {
  readonly outcome: Promise<Outcome>;
  readonly #ask: Ask;
  readonly #asking: ClientRequest;
  readonly #startedAt = performance.now();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #chunks: Buffer[] = [];
  readonly #resolve: (outcome: Outcome) => void;
  #status: number | null = null;
  #firstMs: number | null = null;
  #sentBytes = 0;

  constructor(port: number, key: string, ask: Ask) {
    const { promise, resolve } = withResolvers<Outcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#ask = ask;
    const { path = CHAT, body, headers = {}, agent = false } = ask;
    this.#asking = request({
      port,
      host: '127.0.0.1',
      path,
      agent,
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    });
    this.#asking.on('response', (response) => this.#hear(response));
    this.#asking.on('error', () => this.#end('lost'));
    // After an answer it tells nothing: a slow reader has yet to hear of what came before.
    this.#asking.on('close', () => this.#status === null && this.#end('lost'));
    this.#after(ask.withinMs ?? WITHIN_MS, 'hung');
    if (ask.leaveAfterMs !== undefined) this.#after(ask.leaveAfterMs, 'left');
    void this.#send();
  }

  #after(ms: number, ending: Ending): void {
    this.#timers.push(setTimeout(() => this.#end(ending), ms));
  }

  async #send(): Promise<void> {
    const { body } = this.#ask;
    if (typeof body !== 'function') {
      this.#asking.end(body);
      return;
    }
    for (const chunk of body()) {
      // An answer in the middle of a body is a refusal of the rest.
      if (this.#status !== null || this.#asking.destroyed) return;
      this.#sentBytes += chunk.length;
      if (!this.#asking.write(chunk)) await drained(this.#asking);
    }
    this.#asking.end();
  }

  #hear(response: IncomingMessage): void {
    this.#status = response.statusCode ?? null;
    response.on('data', (chunk: Buffer) => {
      this.#firstMs ??= performance.now() - this.#startedAt;
      this.#chunks.push(chunk);
      if (this.#chunks.length > KEPT_CHUNKS) this.#chunks.shift();
    });
    response.on('end', () => this.#end(response.complete ? (this.#status ?? 'lost') : 'lost'));
    response.on('error', () => this.#end('lost'));
    response.on('close', () => this.#end('lost'));
    this.#ask.listen?.(response, this.#asking);
  }

  #end(ending: Ending): void {
    for (const timer of this.#timers) clearTimeout(timer);
    // A kept connection goes back to its agent by itself.
    if (typeof ending !== 'number' || this.#ask.agent === undefined) this.#asking.destroy();
    const text = Buffer.concat(this.#chunks).toString('utf8');
    this.#resolve({ ending, text, firstMs: this.#firstMs, sentBytes: this.#sentBytes });
  }
}

function drained(asking: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      asking.off('drain', done).off('close', done).off('response', done);
      resolve();
    };
    asking.on('drain', done).on('close', done).on('response', done);
  });
}

/** Polyfill of Node 22's function. */
function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}
