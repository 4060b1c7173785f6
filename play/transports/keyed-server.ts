/** HTTP servers whose clients have a key: who gets in, limits of time and connections, and how a request fails. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { badConfig } from '../../core/contract/failures.ts';
import { LOOPBACK_NAMES } from '../../core/names/addresses.ts';
import { Connections } from './gateway-connections.ts';
import { discardBody, HttpRefusal, isSameSecret, keyOf, listen } from './http-server.ts';

export interface KeyedServerOptions {
  /** Names the server in messages: `temper serve`. */
  readonly command: string;
  readonly host: string;
  readonly port: number;
  /** Names under which clients may address it, besides those of loopback. */
  readonly hosts: readonly string[];
  /** Null: each client has one of its own, which the handler checks. */
  readonly key: string | null;
  /** In place of those below. */
  readonly limits?: Partial<Limits>;
  /** By default, those of a burst of clients get some time to send their keys. */
  readonly connections?: Connections;
  /** Advice to a person if the port is taken; by default, about flags. */
  readonly remedy?: string;
}

export interface KeyedServer {
  readonly port: number;
  /** Lets the process end while it listens. */
  unref(): void;
  close(): Promise<void>;
}

export interface KeyedHandler {
  /** Writes the answer, or throws. */
  answer(request: IncomingMessage, response: ServerResponse, access: Access): Promise<void>;
  /** Writes the answer to a request that failed: all that was sent was taken, and nothing is written yet. */
  refuse(error: unknown, request: IncomingMessage, response: ServerResponse): Promise<void> | void;
}

const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 120_000,
  keepAliveTimeout: 75_000,
  /** Interval of the check for requests that take too long. */
  connectionsCheckingInterval: 1000,
  /** For a connection whose client reads nothing. No answer takes as long. */
  timeout: 600_000,
  /** More than the engine lets wait; one more would be hung up without an answer. */
  maxConnections: 16_384,
};

export type Limits = typeof LIMITS;
/** A burst of clients gets so long to send its keys, before the oldest connections without one give way. */
const GRACE_MS = 1000;

export async function openKeyedServer(options: KeyedServerOptions, handler: KeyedHandler): Promise<KeyedServer> {
  const { connections = new Connections(GRACE_MS) } = options;
  const access = new Access(options, connections);
  const limits = { ...LIMITS, ...options.limits };
  const server = createServer(limits, (request, response) => void serve(handler, request, response, access));
  Object.assign(server, { timeout: limits.timeout, maxConnections: limits.maxConnections });
  server.on('connection', (socket) => connections.add(socket));
  const port = await listenOn(server, options);
  return {
    port,
    unref: () => server.unref(),
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function serve(
  handler: KeyedHandler,
  request: IncomingMessage,
  response: ServerResponse,
  access: Access,
): Promise<void> {
  // Writes after the client has gone have no reader.
  response.on('error', () => undefined);
  try {
    await handler.answer(request, response, access);
  } catch (error) {
    // On a connection that ends with the answer, what is not taken would take the refusal along.
    if (!response.headersSent) await discardBody(request);
    if (response.headersSent || response.destroyed) response.destroy();
    else await handler.refuse(error, request, response);
  }
}

async function listenOn(server: Server, options: KeyedServerOptions): Promise<number> {
  const { command, host, port, remedy = 'pass another --port or --host' } = options;
  try {
    // The backlog is as large as the limit: the system resets connections beyond it.
    return await listen(server, { host, port, backlog: LIMITS.maxConnections });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const rule = `${command} must be able to listen on ${host}, port ${port}, but the system refused (${code})`;
    throw badConfig(`${rule}; ${remedy}`, { cause });
  }
}

/** Checks of a request's head. */
export class Access {
  readonly #command: string;
  readonly #names: ReadonlySet<string>;
  readonly #key: string | null;
  readonly #connections: Connections;

  constructor({ command, hosts, key }: KeyedServerOptions, connections: Connections) {
    this.#command = command;
    this.#names = new Set([...LOOPBACK_NAMES, ...hosts.map((name) => name.toLowerCase())]);
    this.#key = key;
    this.#connections = connections;
  }

  /** A web page that points its own name at this address sends that name. */
  checkHost({ headers }: IncomingMessage): void {
    const name = hostName(headers.host ?? '');
    if (this.#names.has(name)) return;
    throw new HttpRefusal(
      403,
      `Host must be one of ${[...this.#names].join(', ')}, got ${JSON.stringify(name.slice(0, 80))}; use one of these${this.#key === null ? '' : `, or start ${this.#command} with --allow-host`}`,
      'host',
    );
  }

  checkKey(request: IncomingMessage): void {
    if (this.#key !== null && isSameSecret(keyOf(request.headers), this.#key)) return this.keep(request);
    throw new HttpRefusal(
      401,
      `the key must be the one that ${this.#command} was started with; send it as "Authorization: Bearer KEY" or "x-api-key: KEY"`,
      'invalid_api_key',
    );
  }

  /** Its client has shown a secret of this server: the connection gives way to nobody. */
  keep({ socket }: IncomingMessage): void {
    this.#connections.keep(socket);
  }
}

/** Some clients behind a proxy send the whole address. Invalid addresses match nothing. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  return URL.canParse(url, 'http://front') ? new URL(url, 'http://front').pathname : url;
}

/** Of those at a path. HEAD is answered as GET. Null if the path has none. */
export function findByMethod<T extends { readonly method: string }>(
  path: string,
  { method = 'GET' }: IncomingMessage,
  atPath: readonly T[],
): T | null {
  const found = atPath.find((each) => each.method === (method === 'HEAD' ? 'GET' : method));
  const methods = atPath.map((each) => each.method);
  if (found === undefined && methods.length > 0) checkMethod(path, method, methods);
  return found ?? null;
}

export function checkMethod(path: string, method: string, methods: readonly string[]): void {
  if (!methods.includes(method))
    throw new HttpRefusal(405, `${path} must be requested with ${methods.join(' or ')}, not with ${method}`, 'method');
}

/** Without the port; `[::1]:80` is an address in brackets. */
function hostName(header: string): string {
  const [, bracketed] = /^\[([^\]]*)\]/.exec(header) ?? [];
  return (bracketed ?? header.split(':')[0] ?? '').toLowerCase();
}
