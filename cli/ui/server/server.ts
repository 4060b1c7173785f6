/** The HTTP server of `temper ui`: who gets in, limits, and the form of answers. Its endpoints are data. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BodyRoom, discardBody, HttpRefusal, writeReply } from '../../../play/transports/http-server.ts';
import {
  checkMethod,
  openKeyedServer,
  pathOf,
  type Access,
  type KeyedServer,
} from '../../../play/transports/keyed-server.ts';
import type { KeyedPlace } from '../../command-line/keyed-place.ts';
import type { PageFiles } from '../../pages/page-files.ts';
import { Admission, checkJson, checkOrigin, NEW_LINK } from './admission.ts';
import { chooseEncoding, jsonBody, type Body, compress } from './compress.ts';
import { HTML_TYPE, messagePage, PAGE, SAFE_HEADERS } from './page.ts';
import { createHash } from 'node:crypto';
import { type FailureType, TemperError, WorkFailed } from '../../../core/contract/failures.ts';
import type { ApiError } from '../../../views/api/requests.ts';
import { NotFound } from '../../../views/context/context.ts';

/** A conversation of a chat is the longest. */
const MAX_BODY_BYTES = 4 * 1024 ** 2;
const MAX_HELD_BYTES = 64 * 1024 ** 2;
const MAX_CONNECTIONS = 1024;
const API = '/api/';
const EVENTS_TYPE = 'text/event-stream';

export interface UiServerOptions {
  readonly place: Pick<KeyedPlace, 'host' | 'port' | 'hosts' | 'key'>;
  readonly endpoints: readonly Endpoint[];
  /** Answers paths of no endpoint. */
  readonly answerView: (path: string, query: URLSearchParams) => Promise<object>;
  readonly isReadOnly: boolean;
  readonly readPage: () => Promise<PageFiles>;
  /** A link was used: the terminal shows the next one. */
  readonly onOpened: () => void;
}

export interface UiServer extends KeyedServer {
  /** Path of a link that works once. */
  makeLink(): string;
}

export async function openUiServer(options: UiServerOptions): Promise<UiServer> {
  const server = new Server(options);
  const place = { ...options.place, command: 'temper ui', maxConnections: MAX_CONNECTIONS };
  const keyed = await openKeyedServer(place, (request, response, access) => server.serve(request, response, access));
  return { port: keyed.port, close: () => keyed.close(), makeLink: () => server.admission.makeLink() };
}

class Server {
  readonly admission = new Admission();
  readonly #options: UiServerOptions;
  readonly #bodies = new BodyRoom(MAX_HELD_BYTES, MAX_BODY_BYTES);
  #assets: Promise<ReadonlyMap<string, Asset>> | null = null;

  constructor(options: UiServerOptions) {
    this.#options = options;
  }

  async serve(request: IncomingMessage, response: ServerResponse, access: Access): Promise<void> {
    // Writes after the client has gone have no reader.
    response.on('error', () => undefined);
    for (const [name, value] of Object.entries(SAFE_HEADERS)) response.setHeader(name, value);
    response.setHeader('cache-control', 'no-store');
    try {
      access.checkHost(request);
      checkOrigin(request);
      await this.#serve(request, response, access);
    } catch (error) {
      if (response.headersSent) return void response.destroy();
      await discardBody(request);
      await refuse(request, response, error);
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse, access: Access): Promise<void> {
    const path = pathOf(request);
    const { localPort: port = 0 } = request.socket;
    if (path === '/health') return writeJson(request, response, 200, { status: 'ok' });
    if (this.admission.isOpening(path)) return this.#open(request, response, path, port);
    const inner = this.admission.admit(request, access, port);
    if (inner.startsWith(API)) return this.#answer(request, response, inner.slice(API.length));
    checkMethod(inner, request.method ?? 'GET', ['GET', 'HEAD']);
    if (inner === '/') return writeHtml(response, 200, PAGE);
    await this.#sendAsset(request, response, inner);
  }

  #open(request: IncomingMessage, response: ServerResponse, path: string, port: number): void {
    const opened = this.admission.open(request, path, port);
    if (opened === null)
      throw new HttpRefusal(410, `this link was used already, or is none of this start; ${NEW_LINK}`, 'used_link');
    const { location, cookie } = opened;
    response.setHeader('set-cookie', cookie);
    // A page of another site leads here: of a redirect, the browser would not send the cookie on.
    const isElsewhere = !['none', 'same-origin', undefined].includes(header(request, 'sec-fetch-site'));
    if (isElsewhere) {
      response.setHeader('refresh', `0; url=${location}`);
      writeHtml(response, 200, messagePage('Opening', 'One moment.'));
    } else response.writeHead(303, { location }).end();
    this.#options.onOpened();
  }

  async #sendAsset(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    this.#assets ??= this.#options.readPage().then(pageAssets);
    const asset = (await this.#assets).get(path);
    if (asset === undefined) throw new HttpRefusal(404, 'there is no page at this address', 'not_found');
    const { type, etag } = asset;
    const headers = { 'content-type': type, etag, 'cache-control': 'private, no-cache', vary: 'accept-encoding' };
    if (header(request, 'if-none-match') === etag) return void response.writeHead(304, headers).end();
    const { bytes, encoding } = await asset.body(encodingOf(request));
    response.writeHead(200, { ...headers, 'content-length': bytes.length, ...encodingHeader(encoding) }).end(bytes);
  }

  async #answer(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET');
    const { searchParams: query } = new URL(request.url ?? '/', 'http://front');
    const atPath = this.#options.endpoints.filter((each) => each.path === path);
    const endpoint = atPath.find((each) => each.method === method);
    if (endpoint === undefined) {
      checkMethod(path, method, atPath.length > 0 ? atPath.map((each) => each.method) : ['GET']);
      return writeJson(request, response, 200, await this.#options.answerView(path, query));
    }
    if (method === 'POST') checkJson(request);
    if (endpoint.isAction && this.#options.isReadOnly)
      throw new HttpRefusal(403, 'temper ui was started with --read-only; start it without to act', 'read_only');
    const signal = goneSignal(response);
    await this.#bodies.hold(request, async ({ body }) =>
      writeAnswer(request, response, await endpoint.answer({ query, body, signal })),
    );
  }
}

function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return gone.signal;
}

function header({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

const encodingOf = (request: IncomingMessage): Body['encoding'] =>
  chooseEncoding(header(request, 'accept-encoding') ?? '');

const encodingHeader = (encoding: string | null) => (encoding === null ? {} : { 'content-encoding': encoding });

async function writeAnswer(request: IncomingMessage, response: ServerResponse, reply: UiReply): Promise<void> {
  if ('json' in reply) return writeJson(request, response, 200, reply.json);
  await writeReply(response, { status: 200, headers: { 'content-type': EVENTS_TYPE }, events: reply.events });
}

async function writeJson(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  value: object,
): Promise<void> {
  const { bytes, encoding } = await jsonBody(value, encodingOf(request));
  const sizes = { 'content-length': bytes.length, vary: 'accept-encoding', ...encodingHeader(encoding) };
  response.writeHead(status, { 'content-type': 'application/json', ...sizes }).end(bytes);
}

function writeHtml(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': HTML_TYPE }).end(text);
}

/** A person's browser gets a page, everything else JSON. */
async function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): Promise<void> {
  const refusal = describeRefusal(error);
  const isPage = header(request, 'accept')?.includes('text/html') === true && !pathOf(request).includes(API);
  if (isPage) return writeHtml(response, refusal.status, messagePage('Temper', refusal.message));
  await writeJson(request, response, refusal.status, apiError(refusal));
}

/** Script and style of the page, compressed once, and kept by browsers until they change. */
interface Asset {
  readonly type: string;
  readonly etag: string;
  body(wanted: Body['encoding']): Promise<Body>;
}

/** Files of the page by path. */
function pageAssets({ js, css }: PageFiles): ReadonlyMap<string, Asset> {
  return new Map([
    ['/page.js', createAsset('text/javascript; charset=utf-8', js)],
    ['/page.css', createAsset('text/css; charset=utf-8', css)],
  ]);
}

function createAsset(type: string, text: string): Asset {
  const bytes = Buffer.from(text);
  const kept = new Map<Body['encoding'], Promise<Body>>();
  return {
    type,
    etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    body(wanted) {
      const body = kept.get(wanted) ?? compress(bytes, wanted);
      kept.set(wanted, body);
      return body;
    },
  };
}

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly code: string | null;
}

const STATUS: Partial<Record<FailureType, number>> = {
  BadConfig: 422,
  StoreUnavailable: 503,
  SourceUnavailable: 503,
  StoreCorrupt: 500,
  StepConflict: 409,
  LaterVersion: 409,
};

/** Errors as answers: status and text, and nothing of the machine for an error that nobody expected. */
function describeRefusal(error: unknown): Refusal {
  if (error instanceof HttpRefusal) return error;
  const { message } = error as Error;
  if (error instanceof NotFound) return { status: 404, message, code: 'not_found' };
  if (error instanceof WorkFailed) return { status: 409, message, code: 'failed' };
  if (error instanceof TemperError && STATUS[error.type] !== undefined)
    return { status: STATUS[error.type]!, message, code: error.type };
  console.error(error);
  return { status: 500, message: 'temper ui failed on this request; its terminal says more', code: 'internal' };
}

function apiError({ message, code }: Refusal): ApiError {
  return { error: { message, code } };
}

/** Endpoints of `temper ui` as data. */
interface UiRequest {
  readonly query: URLSearchParams;
  /** Empty for GET. */
  readonly body: string;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
}

type UiReply =
  | { readonly json: object }
  /** Server-sent events, each whole. */
  | { readonly events: AsyncIterable<string> };

export interface Endpoint {
  readonly method: 'GET' | 'POST';
  /** Below `/api/`. */
  readonly path: string;
  /** Starts or changes something, or costs money: refused by `--read-only`. */
  readonly isAction: boolean;
  answer(this: void, request: UiRequest): Promise<UiReply>;
}

/** One server-sent event. JSON has no line ends outside of strings, and in strings they are escaped. */
export function formatEvent(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
