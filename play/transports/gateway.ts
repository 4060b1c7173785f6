/**
 * An HTTP listener on loopback for programs that are not JavaScript of this process: one for each process, started with
 * the first attempt that needs it. Each attempt has a random key of its own, which is all that its program knows: the
 * key finds the attempt, and dies with it. The engine's key stays here.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BODY_TOO_LARGE } from '../../core/contract/wire-constants.ts';
import { type ModelReply, type ModelRequest, findDialect } from '../dialects/answer-request.ts';
import { Connections } from './gateway-connections.ts';
import { BodyRoom, HttpRefusal, isSameSecret, keyOf, writeRefusal, writeReply } from './http-server.ts';
import { type Access, checkMethod, type KeyedServer, type Limits, openKeyedServer, pathOf } from './keyed-server.ts';

/** An attempt's address in the gateway. */
export interface AttemptEndpoint {
  /** `http://127.0.0.1:port` */
  readonly origin: string;
  readonly key: string;
  /** The body posted to `/attempt/result`; null if nothing was. */
  readonly posted: string | null;
  /** Revokes the key and closes the attempt's connections. */
  close(): void;
}

/** Handles the requests of an attempt's program. */
export interface RequestHandler {
  answer(request: ModelRequest): Promise<ModelReply>;
  /** A request was too long to be read. */
  onTooLong(): void;
  readonly takesResult: boolean;
}

interface OpenEndpoint {
  readonly secret: string;
  /** Answers what its program asks a model. */
  readonly handler: RequestHandler;
  posted: string | null;
  requests: number;
  readonly bodies: BodyRoom;
}

const RESULT_PATH = '/attempt/result';
/** Concurrent requests of one attempt. */
const MAX_REQUESTS = 128;
/** Bodies of one attempt's concurrent requests. */
const MAX_HELD_BYTES = 128 * 1024 ** 2;
const LIMITS = {
  /** How long a request may take to come, whole. */
  requestTimeout: 30_000,
  /** Clients keep connections for their next call; one that is closed under them is an error of theirs. */
  keepAliveTimeout: 600_000,
  /** A call may wait as long as its attempt. */
  timeout: 0,
  /** More than all attempts of a worker have together. */
  maxConnections: 8192,
};
const SECRET_BYTES = 32;

export class Gateway {
  readonly #endpoints = new Map<string, OpenEndpoint>();
  readonly #connections = new Connections();
  readonly #limits: Partial<Limits>;
  #listening: Promise<KeyedServer> | null = null;

  constructor(limits: Partial<Limits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** A new key for one attempt. */
  async open(handler: RequestHandler): Promise<AttemptEndpoint> {
    const { port } = await this.#listen();
    const id = randomBytes(8).toString('hex');
    const secret = randomBytes(SECRET_BYTES).toString('hex');
    const endpoint: OpenEndpoint = { secret, handler, posted: null, requests: 0, bodies: new BodyRoom(MAX_HELD_BYTES) };
    this.#endpoints.set(id, endpoint);
    return {
      origin: `http://127.0.0.1:${port}`,
      key: `temper-${id}-${secret}`,
      get posted() {
        return endpoint.posted;
      },
      close: () => {
        this.#endpoints.delete(id);
        this.#connections.end(endpoint);
      },
    };
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#connections.size;
  }

  #listen(): Promise<KeyedServer> {
    this.#listening ??= this.#start().catch((error: unknown) => {
      this.#listening = null;
      throw error;
    });
    return this.#listening;
  }

  async #start(): Promise<KeyedServer> {
    const place = { command: 'the gateway', host: '127.0.0.1', port: 0, hosts: [], key: null };
    const options = { ...place, limits: this.#limits, connections: this.#connections };
    const server = await openKeyedServer(options, { answer: this.#serve.bind(this), refuse });
    // An attempt that waits for its program keeps this process alive; a listener without one does not.
    server.unref();
    return server;
  }

  async #serve(request: IncomingMessage, response: ServerResponse, access: Access): Promise<void> {
    access.checkHost(request);
    if (request.headers.origin !== undefined)
      throw new HttpRefusal(403, 'the gateway answers programs, not pages of a browser');
    const endpoint = this.#find(keyOf(request.headers));
    if (!this.#connections.claim(request.socket, endpoint)) throw tooMuch('connections');
    await this.#answer(endpoint, request, response);
  }

  async #answer(endpoint: OpenEndpoint, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (endpoint.requests >= MAX_REQUESTS) throw tooMuch('requests at once');
    endpoint.requests += 1;
    try {
      const path = callPath(request);
      await endpoint.bodies.hold(request, (asked) => answer(endpoint, { ...asked, path }, response));
    } catch (error) {
      if (error instanceof HttpRefusal && error.code === BODY_TOO_LARGE) endpoint.handler.onTooLong();
      throw error;
    } finally {
      endpoint.requests -= 1;
    }
  }

  /** Finds the attempt by the first part of its key; the secret part is compared in constant time. */
  #find(key: string): OpenEndpoint {
    const [, id = '', secret = ''] = /^temper-([0-9a-f]{16})-([0-9a-f]{64})$/.exec(key) ?? [];
    const endpoint = this.#endpoints.get(id);
    if (endpoint !== undefined && isSameSecret(secret, endpoint.secret)) return endpoint;
    throw new HttpRefusal(
      401,
      'the key must be that of an attempt that is being played; pass the one the program was given',
    );
  }
}

/** This process's. */
export const gateway = new Gateway();

function callPath(request: IncomingMessage): string {
  const path = pathOf(request);
  if (path !== RESULT_PATH && findDialect(path) === null)
    throw new HttpRefusal(
      404,
      `the gateway has no ${path.slice(0, 100)}; POST to a model's API below /v1, or to ${RESULT_PATH}`,
    );
  checkMethod(path, request.method ?? '', ['POST']);
  return path;
}

async function answer(
  endpoint: OpenEndpoint,
  asked: Omit<ModelRequest, 'signal'>,
  response: ServerResponse,
): Promise<void> {
  const { handler } = endpoint;
  if (asked.path === RESULT_PATH) {
    if (!handler.takesResult)
      throw new HttpRefusal(
        403,
        'this key calls the model and takes no result here; print the result as the last line of stdout',
      );
    endpoint.posted = asked.body;
    response.writeHead(204).end();
    return;
  }
  const gone = new AbortController();
  response.on('close', () => {
    if (!response.writableFinished) gone.abort(new Error('the program gave the request up'));
  });
  await writeReply(response, await handler.answer({ ...asked, signal: gone.signal }));
}

/** Errors have OpenAI's form. A call that its attempt gave up is told nothing. */
function refuse(error: unknown, _request: IncomingMessage, response: ServerResponse): void {
  if (!(error instanceof HttpRefusal)) return void response.destroy();
  writeRefusal(error, response, { connection: 'close', 'x-should-retry': 'false' });
}

function tooMuch(of: string): HttpRefusal {
  return new HttpRefusal(429, `an attempt may not have so many ${of}; make fewer calls in parallel`);
}
