/** HTTP servers whose clients have a key: who gets in, and limits of time and connections. Handlers write the answers. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { badConfig } from '../../core/contract/failures.ts';
import { LOOPBACK_NAMES } from '../../core/names/addresses.ts';
import { Connections } from './gateway-connections.ts';
import { HttpRefusal, isSameSecret, keyOf, listen } from './http-server.ts';

export interface KeyedServerOptions {
  /** Names the server in messages: `temper serve`. */
  readonly command: string;
  readonly host: string;
  readonly port: number;
  /** Names under which clients may address it, besides those of loopback. */
  readonly hosts: readonly string[];
  readonly key: string;
  /** 16,384 by default. */
  readonly maxConnections?: number;
  /** Advice to a person if the port is taken; by default, about flags. */
  readonly remedy?: string;
}

export interface KeyedServer {
  readonly port: number;
  close(): Promise<void>;
}

type Serve = (request: IncomingMessage, response: ServerResponse, access: Access) => Promise<void>;

const HEADERS_TIMEOUT_MS = 10_000;
/** Interval of the check for requests that take too long. */
const CHECK_MS = 1000;
const REQUEST_TIMEOUT_MS = 120_000;
const KEEP_ALIVE_MS = 75_000;
/** Limit for a connection whose client reads nothing. No answer takes as long. */
const STALLED_MS = 600_000;
/** More than the engine lets wait; one more would be hung up without an answer. */
const MAX_CONNECTIONS = 16_384;
/** A burst of clients gets so long to send its keys, before the oldest connections without one give way. */
const GRACE_MS = 1000;

/** `serve` writes every answer, refusals included, and never rejects. */
export async function openKeyedServer(options: KeyedServerOptions, serve: Serve): Promise<KeyedServer> {
  const connections = new Connections(GRACE_MS);
  const access = new Access(options, connections);
  const limits = { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS };
  const times = { ...limits, keepAliveTimeout: KEEP_ALIVE_MS, connectionsCheckingInterval: CHECK_MS };
  const server = createServer(times, (request, response) => void serve(request, response, access));
  server.maxConnections = options.maxConnections ?? MAX_CONNECTIONS;
  server.on('connection', (socket) => connections.add(socket));
  server.setTimeout(STALLED_MS);
  const port = await listenOn(server, options);
  return {
    port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function listenOn(server: Server, options: KeyedServerOptions): Promise<number> {
  const { command, host, port, remedy = 'pass another --port or --host' } = options;
  try {
    // The backlog is as large as the limit: the system resets connections beyond it.
    return await listen(server, { host, port, backlog: MAX_CONNECTIONS });
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
  readonly #key: string;
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
      `Host must be one of ${[...this.#names].join(', ')}, got ${JSON.stringify(name.slice(0, 80))}; use one of these, or start ${this.#command} with --allow-host`,
      'host',
    );
  }

  checkKey(request: IncomingMessage): void {
    if (isSameSecret(keyOf(request.headers), this.#key)) return this.keep(request);
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

export function checkMethod(path: string, method: string, methods: readonly string[]): void {
  if (!methods.includes(method))
    throw new HttpRefusal(405, `${path} must be requested with ${methods.join(' or ')}, not with ${method}`, 'method');
}

/** Without the port; `[::1]:80` is an address in brackets. */
function hostName(header: string): string {
  const [, bracketed] = /^\[([^\]]*)\]/.exec(header) ?? [];
  return (bracketed ?? header.split(':')[0] ?? '').toLowerCase();
}
