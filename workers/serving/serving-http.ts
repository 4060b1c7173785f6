/** The HTTP server of `temper serve`: access, and limits of requests. Dialects write the answers. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { TemperError } from '../../core/failures.ts';
import { LOOPBACK_NAMES } from '../../core/loopback.ts';
import type { ModelReply, ModelRequest } from '../../play/dialects/answer-request.ts';
import { DEFAULT_DIALECT, findDialect } from '../../play/dialects/find-dialect.ts';
import { Connections } from '../../play/transports/gateway-connections.ts';
import {
  BodyRoom,
  discardBody,
  HttpRefusal,
  isSameSecret,
  keyOf,
  listen,
  writeReply,
} from '../../play/transports/http-server.ts';

export interface ServingOptions {
  readonly host: string;
  readonly port: number;
  /** Names under which clients may address it, besides those of loopback. */
  readonly hosts: readonly string[];
  readonly key: string;
  /** Names that `/v1/models` lists. */
  readonly models: readonly string[];
  /** Answers of `/v1/responses`, by id. */
  readonly kept: { answer(id: string): object | null; forget(id: string): void };
  /** Limit over all concurrent requests; 512 MiB by default. */
  readonly maxHeldBytes?: number;
  /** 16,384 by default. */
  readonly maxConnections?: number;
  /** Rejects if the client has gone away. */
  readonly answer: (request: ModelRequest) => Promise<ModelReply>;
}

export interface ServingHttp {
  readonly port: number;
  close(): Promise<void>;
}

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
const MAX_HELD_BYTES = 512 * 1024 ** 2;

export async function openServingHttp(options: ServingOptions): Promise<ServingHttp> {
  const connections = new Connections(GRACE_MS);
  const handler = new RequestHandler(options, connections);
  const limits = { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS };
  const times = { ...limits, keepAliveTimeout: KEEP_ALIVE_MS, connectionsCheckingInterval: CHECK_MS };
  const server = createServer(times, (request, response) => {
    void handler.serve(request, response);
  });
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

async function listenOn(server: Server, { host, port }: ServingOptions): Promise<number> {
  try {
    // The backlog is as large as the limit: the system resets connections beyond it.
    return await listen(server, { host, port, backlog: MAX_CONNECTIONS });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const rule = `temper serve must be able to listen on ${host}, port ${port}, but the system refused (${code})`;
    throw new TemperError('BadConfig', `${rule}; pass another --port or --host`, { cause });
  }
}

class RequestHandler {
  readonly #options: ServingOptions;
  readonly #names: ReadonlySet<string>;
  readonly #connections: Connections;
  readonly #bodies: BodyRoom;

  constructor(options: ServingOptions, connections: Connections) {
    this.#options = options;
    this.#connections = connections;
    this.#names = new Set([...LOOPBACK_NAMES, ...options.hosts.map((name) => name.toLowerCase())]);
    this.#bodies = new BodyRoom(options.maxHeldBytes ?? MAX_HELD_BYTES);
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = pathOf(request);
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    // Writes after the client has gone have no reader.
    response.on('error', () => gone.abort());
    try {
      const found = this.#find(request, path);
      if (found === null) await this.#ask(request, response, gone.signal);
      else await writeReply(response, json(found));
    } catch (error) {
      // On a connection that ends with the answer, what is not taken would take the refusal along.
      if (!response.headersSent) await discardBody(request);
      if (gone.signal.aborted) return;
      if (response.headersSent) response.destroy();
      else await writeReply(response, refuse(path, error));
    }
  }

  /** Null if the model must be asked. */
  #find(request: IncomingMessage, path: string): object | null {
    this.#checkHost(request.headers.host ?? '');
    if (path === '/health') return { status: 'ok' };
    this.#checkKey(request);
    const { method = 'GET' } = request;
    const [, place, id] = /^\/v1\/(models|responses)(?:\/([^/]+))?$/.exec(path) ?? [];
    if (place === 'models') return this.#model(method, id);
    if (place === 'responses' && id !== undefined) return this.#kept(request, id);
    if (findDialect(path) === null)
      throw new HttpRefusal(404, `no endpoint ${path.slice(0, 80)}; see temper serve --help`, 'not_found');
    checkMethod(path, method, ['POST']);
    return null;
  }

  /** All of them without an id. */
  #model(method: string, id: string | undefined): object {
    checkMethod('/v1/models', method, ['GET']);
    const { models } = this.#options;
    if (id === undefined) return listOf(models);
    const name = decode(id);
    if (models.includes(name)) return describeModel(name);
    const rule = `model must be ${models.join(' or ')}, got ${JSON.stringify(name.slice(0, 80))}`;
    throw new HttpRefusal(404, `${rule}; change it`, 'model_not_found');
  }

  #kept({ method = 'GET', url = '' }: IncomingMessage, id: string): object {
    checkMethod('/v1/responses/ID', method, ['GET', 'DELETE']);
    if (url.includes('stream=true'))
      throw new HttpRefusal(
        400,
        'stream must be absent (an answer that is kept is told whole), got true; leave it out',
      );
    const { kept } = this.#options;
    const answer = kept.answer(id);
    if (answer === null)
      throw new HttpRefusal(
        404,
        `Response with id ${JSON.stringify(id.slice(0, 80))} not found. temper serve keeps the newest ones, unless store is false`,
        'not_found',
      );
    if (method === 'GET') return answer;
    kept.forget(id);
    return { id, object: 'response', deleted: true };
  }

  async #ask(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const path = pathOf(request);
    await this.#bodies.hold(request, async (asked) =>
      writeReply(response, await this.#options.answer({ ...asked, path, signal })),
    );
  }

  /** A web page that points its own name at this address sends that name. */
  #checkHost(header: string): void {
    const name = hostName(header);
    if (this.#names.has(name)) return;
    throw new HttpRefusal(
      403,
      `Host must be one of ${[...this.#names].join(', ')}, got ${JSON.stringify(name.slice(0, 80))}; use one of these, or start temper serve with --allow-host`,
      'host',
    );
  }

  #checkKey({ headers, socket }: IncomingMessage): void {
    if (isSameSecret(keyOf(headers), this.#options.key)) return this.#connections.keep(socket);
    throw new HttpRefusal(
      401,
      'the key must be the one that temper serve was started with; send it as "Authorization: Bearer KEY" or "x-api-key: KEY"',
      'invalid_api_key',
    );
  }
}

/** Some clients behind a proxy send the whole address. Invalid addresses match nothing. */
function pathOf({ url = '/' }: IncomingMessage): string {
  return URL.canParse(url, 'http://front') ? new URL(url, 'http://front').pathname : url;
}

/** Without the port; `[::1]:80` is an address in brackets. */
function hostName(header: string): string {
  const [, bracketed] = /^\[([^\]]*)\]/.exec(header) ?? [];
  return (bracketed ?? header.split(':')[0] ?? '').toLowerCase();
}

function checkMethod(path: string, method: string, methods: readonly string[]): void {
  if (!methods.includes(method))
    throw new HttpRefusal(405, `${path} must be requested with ${methods.join(' or ')}, not with ${method}`, 'method');
}

/** Keeps malformed text as it was sent. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Lists models as both OpenAI and Anthropic do. */
function listOf(models: readonly string[]): object {
  const ends = { first_id: models[0] ?? null, last_id: models.at(-1) ?? null };
  return { object: 'list', data: models.map(describeModel), has_more: false, ...ends };
}

function describeModel(id: string): object {
  const epoch = new Date(0).toISOString();
  return { id, object: 'model', created: 0, owned_by: 'temper', type: 'model', display_name: id, created_at: epoch };
}

function json(body: object, status = 200): ModelReply {
  return { status, headers: { 'content-type': 'application/json' }, json: body };
}

function refuse(path: string, error: unknown): ModelReply {
  const dialect = findDialect(path) ?? DEFAULT_DIALECT;
  if (error instanceof HttpRefusal) {
    const refused = json(dialect.writeError(error.error), error.status);
    return error.status === 429 ? { ...refused, headers: { ...refused.headers, 'retry-after': '1' } } : refused;
  }
  const message = 'temper serve failed on this request; its terminal says more';
  console.error(error);
  return json(dialect.writeError({ message, type: 'EngineFailed', code: 'internal', param: null }), 500);
}
