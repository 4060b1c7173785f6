/** The HTTP server of `temper review`: who gets in, limits, and the form of answers. */
import { decodeEscapes } from '../../core/text/decode.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { TemperError, type FailureType } from '../../core/contract/failures.ts';
import { BodyRoom, discardBody, HttpRefusal } from '../../play/transports/http-server.ts';
import { openKeyedServer, pathOf, type Access, type KeyedServer } from '../../play/transports/keyed-server.ts';
import type { KeyedPlace } from '../command-line/keyed-place.ts';
import { readPageFiles, type PageFiles } from '../pages/page-files.ts';
import type { RewardDesk } from './desk.ts';
import type { ReviewKeys, KeyScope } from '../../operations/review/keys.ts';
import { noticePage, pageHeaders, renderPage } from './pages/page.ts';
import { JSON_ROUTES } from './json-routes.ts';
import { LINK_ROUTES } from './link-routes.ts';
import { REVIEWER_ROUTES } from './reviewer-routes.ts';
import type { Reply, Route } from './route.ts';

const ROUTES: readonly Route[] = [...JSON_ROUTES, ...LINK_ROUTES, ...REVIEWER_ROUTES];

/** A reward with its note and metrics is small. */
const MAX_BODY_BYTES = 256 * 1024;
const MAX_HELD_BYTES = 32 * 1024 ** 2;
const MAX_CONNECTIONS = 4096;

const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' };

export interface ReviewServerOptions {
  readonly place: Pick<KeyedPlace, 'host' | 'port' | 'hosts' | 'key'>;
  readonly keys: ReviewKeys;
  readonly desk: RewardDesk;
  /** Milliseconds since 1970; tests set it. */
  readonly now?: () => number;
}

export async function openReviewServer(options: ReviewServerOptions): Promise<KeyedServer> {
  const server = new ReviewServer(options, await readPageFiles('review'));
  const place = { ...options.place, command: 'temper review', maxConnections: MAX_CONNECTIONS };
  return openKeyedServer(place, (request, response, access) => server.serve(request, response, access));
}

class ReviewServer {
  readonly #options: ReviewServerOptions;
  readonly #files: PageFiles;
  readonly #bodies = new BodyRoom(MAX_HELD_BYTES, MAX_BODY_BYTES);
  readonly #now: () => number;

  constructor(options: ReviewServerOptions, files: PageFiles) {
    this.#options = options;
    this.#files = files;
    this.#now = options.now ?? Date.now;
  }

  async serve(request: IncomingMessage, response: ServerResponse, access: Access): Promise<void> {
    // Writes after the client has gone have no reader.
    response.on('error', () => undefined);
    let kind: Route['kind'] = 'json';
    try {
      access.checkHost(request);
      const path = pathOf(request);
      if (path === '/health') return this.#write(response, { status: 200, json: { status: 'ok' } });
      const { route, parts } = this.#find(request, path);
      kind = route.kind;
      const scope = this.#admit(route, parts, request, access);
      const { keys, desk } = this.#options;
      const { searchParams: query } = new URL(request.url ?? '/', 'http://front');
      await this.#bodies.hold(request, async ({ headers, body }) =>
        this.#write(response, await route.answer({ parts, headers, query, body, scope, desk, keys })),
      );
    } catch (error) {
      if (response.headersSent) return void response.destroy();
      await discardBody(request);
      this.#write(response, refuse(error, kind));
    }
  }

  #find({ method = 'GET' }: IncomingMessage, path: string): { route: Route; parts: string[] } {
    const wanted = method === 'HEAD' ? 'GET' : method;
    const atPath = ROUTES.filter((route) => route.path.test(path));
    const route = atPath.find((each) => each.method === wanted);
    if (route !== undefined) return { route, parts: route.path.exec(path)!.slice(1).map(decodeEscapes) };
    if (atPath.length === 0)
      throw new HttpRefusal(404, `no endpoint ${path.slice(0, 80)}; see temper review --help`, 'not_found');
    const methods = atPath.map((each) => each.method).join(' or ');
    throw new HttpRefusal(405, `this address must be requested with ${methods}, not with ${method}`, 'method');
  }

  /** Checks before the body is read. Returns what a token opens. */
  #admit(
    { access: wanted }: Route,
    parts: readonly string[],
    request: IncomingMessage,
    access: Access,
  ): KeyScope | null {
    if (wanted === 'key') {
      access.checkKey(request);
      return null;
    }
    const scope = this.#options.keys.read(parts[0] ?? '', wanted);
    if (scope === null) throw wrongLink();
    if (scope.expiresAt <= this.#now()) throw expired(scope);
    access.keep(request);
    return scope;
  }

  #write(response: ServerResponse, reply: Reply): void {
    const isPage = 'page' in reply;
    const headers = isPage ? pageHeaders(reply.page, this.#files) : JSON_HEADERS;
    response.writeHead(reply.status, { ...headers, ...reply.headers });
    response.end(isPage ? renderPage(reply.page, this.#files) : JSON.stringify(reply.json));
  }
}

function wrongLink(): HttpRefusal {
  return new HttpRefusal(404, 'this link is not valid here; ask for a new one', 'invalid_link');
}

function expired({ expiresAt }: KeyScope): HttpRefusal {
  const day = new Date(expiresAt).toISOString().slice(0, 10);
  return new HttpRefusal(410, `this link expired on ${day}; ask for a new one`, 'expired');
}

const STATUS: Partial<Record<FailureType, number>> = { BadConfig: 422, StoreUnavailable: 503 };

function refuse(error: unknown, kind: Route['kind']): Reply {
  const { status, message, code } = describe(error);
  if (kind === 'page') return { status, page: noticePage(status === 404 ? 'Not found' : 'Not accepted', message) };
  const type = status === 401 ? 'authentication_error' : 'invalid_request_error';
  return { status, json: { error: { message, type, code, param: null } } };
}

function describe(error: unknown): { status: number; message: string; code: string | null } {
  if (error instanceof HttpRefusal) return error;
  if (error instanceof TemperError && STATUS[error.type] !== undefined)
    return { status: STATUS[error.type]!, message: error.message, code: error.type };
  console.error(error);
  return { status: 500, message: 'temper review failed on this request; its terminal says more', code: 'internal' };
}
