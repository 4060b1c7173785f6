/**
 * Admission to `temper ui`: browsers by a link that works once and leaves a cookie, programs by the key. Cookies ignore
 * ports, so that other servers of this machine would be sent one of the path `/`. The cookie is bound to a path that is
 * made anew at each start and that no other server knows.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { HttpRefusal, isSameSecret, keyOf } from '../../../play/transports/http-server.ts';
import { pathOf, type Access } from '../../../play/transports/keyed-server.ts';

const SECRET_BYTES = 32;
const PATH_BYTES = 16;
/** Links that nobody has opened; the oldest gives way. */
const MOST_TICKETS = 32;
const OPENING = /^\/open\/([A-Za-z0-9_-]{1,100})$/;
const INSIDE = /^\/w\/([A-Za-z0-9_-]{1,100})(\/.*)$/;

const WRONG_SENDER = 'a request must come from a page of temper ui itself';

export interface Opened {
  readonly location: string;
  readonly cookie: string;
}

export class Admission {
  readonly #secret = randomBytes(SECRET_BYTES);
  readonly #base = `/w/${randomBytes(PATH_BYTES).toString('base64url')}/`;
  readonly #tickets = new Set<string>();

  /** Path of a link that works once. */
  makeLink(): string {
    const ticket = randomBytes(SECRET_BYTES).toString('base64url');
    this.#tickets.add(this.#hash(ticket));
    for (const oldest of this.#tickets) {
      if (this.#tickets.size <= MOST_TICKETS) break;
      this.#tickets.delete(oldest);
    }
    return `/open/${ticket}`;
  }

  isOpening(path: string): boolean {
    return OPENING.test(path);
  }

  /** Uses a link up; null if it is none, or was used. */
  open(request: IncomingMessage, path: string, port: number): Opened | null {
    const [, ticket] = OPENING.exec(path) ?? [];
    if (ticket === undefined || isPreview(request)) return null;
    if (!this.#tickets.delete(this.#hash(ticket))) return null;
    const cookie = `${cookieName(port)}=${this.#session()}; Path=${this.#base}; HttpOnly; SameSite=Strict`;
    return { location: this.#base, cookie };
  }

  /** Path within the pages, such as `/api/runs`. Throws for a request without cookie and key. */
  admit(request: IncomingMessage, access: Access, port: number): string {
    const path = pathOf(request);
    const [, given, inner] = INSIDE.exec(path) ?? [];
    if (given === undefined || inner === undefined) {
      if (keyOf(request.headers) === '' && !path.startsWith('/api/')) throw noSession();
      access.checkKey(request);
      return path;
    }
    checkSender(request);
    const isKnown =
      isSameSecret(`/w/${given}/`, this.#base) && isSameSecret(readCookie(request, port), this.#session());
    if (!isKnown) throw noSession();
    access.keep(request);
    return inner;
  }

  #session(): string {
    return createHmac('sha256', this.#secret).update('session').digest('base64url');
  }

  /** Compared by their hashes, how long a search takes says nothing of a ticket. */
  #hash(ticket: string): string {
    return createHmac('sha256', this.#secret).update(`ticket ${ticket}`).digest('base64url');
  }
}

/** It must not use a link up. */
function isPreview({ method, headers }: IncomingMessage): boolean {
  return method !== 'GET' || [headers['purpose'], headers['sec-purpose']].some((why) => why?.includes('prefetch'));
}

/** Tells somebody without a session how to get one. */
export const NEW_LINK =
  'open the newest link that temper ui shows in its terminal, or a new one, which POST /api/links makes for the key';

const noSession = (): HttpRefusal => new HttpRefusal(401, `${NEW_LINK}; each works once`, 'no_session');

const cookieName = (port: number): string => `temper-ui-${port}`;

function readCookie({ headers }: IncomingMessage, port: number): string {
  const start = `${cookieName(port)}=`;
  const parts = (headers.cookie ?? '').split(';').map((part) => part.trim());
  return parts.find((part) => part.startsWith(start))?.slice(start.length) ?? '';
}

/** A browser says which page sent a request. Older ones and programs say nothing. */
function checkSender({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site'] ?? 'same-origin';
  if (site !== 'same-origin' && site !== 'none') throw new HttpRefusal(403, WRONG_SENDER, 'origin');
}

/** For every request: `Origin`, if there is one, is that of this server under the name by which it was asked. */
export function checkOrigin({ headers }: IncomingMessage): void {
  const { origin, host } = headers;
  if (origin === undefined) return;
  if (URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()) return;
  throw new HttpRefusal(403, WRONG_SENDER, 'origin');
}

/** Forms of other pages can send no JSON, and a page's script none without being asked for its origin. */
export function checkJson({ headers }: IncomingMessage): void {
  const type = (headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  if (type === 'application/json') return;
  throw new HttpRefusal(415, 'a body must be JSON; send it with content-type: application/json', 'content_type');
}
