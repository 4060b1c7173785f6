/** The HTTP server of `temper ui`: who gets in, limits, and the form of answers. Its endpoints are data. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { BodyRoom, HttpRefusal, refusalOf, writeReply } from '../../../play/transports/http-server.ts';
import {
  checkMethod,
  findByMethod,
  openKeyedServer,
  pathOf,
  type Access,
  type KeyedServer,
} from '../../../play/transports/keyed-server.ts';
import type { KeyedPlace } from '../../command-line/keyed-place.ts';
import type { PageFiles } from '../../pages/page-files.ts';
import { Admission, checkJson, checkOrigin, NEW_LINK } from './admission.ts';
import { HTML_TYPE, messagePage, PAGE, SAFE_HEADERS } from './page.ts';
import type { ApiError } from '../../../views/api/requests.ts';
import { NotFound } from '../../../views/context/context.ts';

/** A conversation of a chat is the longest. */
const MAX_BODY_BYTES = 4 * 1024 ** 2;
const MAX_HELD_BYTES = 64 * 1024 ** 2;
const MAX_CONNECTIONS = 1024;
const COMMAND = 'temper ui';
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
  const place = { ...options.place, command: COMMAND, limits: { maxConnections: MAX_CONNECTIONS } };
  const keyed = await openKeyedServer(place, { answer: server.answer.bind(server), refuse });
  return { ...keyed, makeLink: () => server.admission.makeLink() };
}

class Server {
  readonly admission = new Admission();
  readonly #options: UiServerOptions;
  readonly #bodies = new BodyRoom(MAX_HELD_BYTES, MAX_BODY_BYTES);
  #assets: Promise<ReadonlyMap<string, Asset>> | null = null;

  constructor(options: UiServerOptions) {
    this.#options = options;
  }

  async answer(request: IncomingMessage, response: ServerResponse, access: Access): Promise<void> {
    for (const [name, value] of Object.entries(SAFE_HEADERS)) response.setHeader(name, value);
    response.setHeader('cache-control', 'no-store');
    access.checkHost(request);
    checkOrigin(request);
    const path = pathOf(request);
    const { localPort: port = 0 } = request.socket;
    if (path === '/health') return writeJson(request, response, 200, { status: 'ok' });
    if (this.admission.isOpening(path)) return this.#open(request, response, path, port);
    const inner = this.admission.admit(request, access, port);
    if (inner.startsWith(API)) return this.#answerApi(request, response, inner.slice(API.length));
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

  async #answerApi(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { searchParams: query } = new URL(request.url ?? '/', 'http://front');
    const atPath = this.#options.endpoints.filter((each) => each.path === path);
    const endpoint = findByMethod(path, request, atPath);
    if (endpoint === null) {
      checkMethod(path, request.method ?? 'GET', ['GET', 'HEAD']);
      return writeJson(request, response, 200, await this.#options.answerView(path, query));
    }
    if (endpoint.method === 'POST') checkJson(request);
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
async function refuse(error: unknown, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const isUnknown = error instanceof NotFound;
  const { status, message, code } = isUnknown
    ? new HttpRefusal(404, error.message, 'not_found')
    : refusalOf(error, COMMAND);
  const isPage = header(request, 'accept')?.includes('text/html') === true && !pathOf(request).includes(API);
  if (isPage) return writeHtml(response, status, messagePage('Temper', message));
  await writeJson(request, response, status, { error: { message, code } } satisfies ApiError);
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

const zip = promisify(gzip);

/** Below it, compressing takes longer than sending. */
const LEAST_BYTES = 1400;

/** Of an answer, compressed if the client takes it so. */
interface Body {
  readonly bytes: Buffer;
  readonly encoding: 'gzip' | null;
}

function encodingOf(request: IncomingMessage): Body['encoding'] {
  const parts = (header(request, 'accept-encoding') ?? '').split(',').map((part) => part.trim().toLowerCase());
  const takes = parts.some((part) => part === 'gzip' || (part.startsWith('gzip;') && !/;\s*q=0(\.0*)?$/.test(part)));
  return takes ? 'gzip' : null;
}

const made = new WeakMap<object, Map<Body['encoding'], Promise<Body>>>();

/** An answer that several clients wait for is written and compressed once. */
export function jsonBody(value: object, wanted: Body['encoding']): Promise<Body> {
  const bodies = made.get(value) ?? new Map<Body['encoding'], Promise<Body>>();
  made.set(value, bodies);
  const body = bodies.get(wanted) ?? compress(Buffer.from(JSON.stringify(value)), wanted);
  bodies.set(wanted, body);
  return body;
}

async function compress(bytes: Buffer, wanted: Body['encoding']): Promise<Body> {
  const encoding = bytes.length < LEAST_BYTES ? null : wanted;
  return { bytes: encoding === null ? bytes : await zip(bytes), encoding };
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
