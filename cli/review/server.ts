/** The HTTP server of `temper review`: who gets in, limits, and the form of answers. */
import { decodeEscapes } from '../../core/text/decode.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BodyRoom, HttpRefusal, refusalOf } from '../../play/transports/http-server.ts';
import {
  findByMethod,
  openKeyedServer,
  pathOf,
  type Access,
  type KeyedServer,
} from '../../play/transports/keyed-server.ts';
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

const COMMAND = 'temper review';
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
  const place = { ...options.place, command: COMMAND, limits: { maxConnections: MAX_CONNECTIONS } };
  return openKeyedServer(place, { answer: server.answer.bind(server), refuse: server.refuse.bind(server) });
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

  async answer(request: IncomingMessage, response: ServerResponse, access: Access): Promise<void> {
    access.checkHost(request);
    const path = pathOf(request);
    if (path === '/health') return this.#write(response, { status: 200, json: { status: 'ok' } });
    const route = findByMethod('this address', request, atPath(path));
    if (route === null)
      throw new HttpRefusal(404, `no endpoint ${path.slice(0, 80)}; see temper review --help`, 'not_found');
    const parts = route.path.exec(path)!.slice(1).map(decodeEscapes);
    const scope = this.#admit(route, parts, request, access);
    const { keys, desk } = this.#options;
    const { searchParams: query } = new URL(request.url ?? '/', 'http://front');
    await this.#bodies.hold(request, async ({ headers, body }) =>
      this.#write(response, await route.answer({ parts, headers, query, body, scope, desk, keys })),
    );
  }

  /** In the form of the address's answers. */
  refuse(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    const refusal = refusalOf(error, COMMAND);
    const { status, message } = refusal;
    const isPage = atPath(pathOf(request))[0]?.kind === 'page';
    const page = noticePage(status === 404 ? 'Not found' : 'Not accepted', message);
    this.#write(response, isPage ? { status, page } : { status, json: { error: refusal.error } });
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

/** All have answers of one kind. */
const atPath = (path: string): readonly Route[] => ROUTES.filter((route) => route.path.test(path));

function wrongLink(): HttpRefusal {
  return new HttpRefusal(404, 'this link is not valid here; ask for a new one', 'invalid_link');
}

function expired({ expiresAt }: KeyScope): HttpRefusal {
  const day = new Date(expiresAt).toISOString().slice(0, 10);
  return new HttpRefusal(410, `this link expired on ${day}; ask for a new one`, 'expired');
}
