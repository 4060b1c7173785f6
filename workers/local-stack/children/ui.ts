/**
 * Temporal's web UI, behind a key and a check of the host name. Temporal's own UI server takes requests for any host from
 * anybody, so a web page could read and change runs through a name that it points at 127.0.0.1. That server listens at a
 * random loopback address, which no page can find or reach; this one is the way to it.
 */
import {
  createServer as createHttpServer,
  request as send,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { isSameSecret, listen, loopbackHosts } from '../../../play/transports/http-server.ts';
import type { PrivateAddress } from '../../process/private-address.ts';

const LOOPBACK = '127.0.0.1';
const SAFE_METHODS: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];
const COOKIE_SECONDS = 365 * 24 * 60 * 60;

export function uiUrl(port: number, key: string): string {
  return `http://${LOOPBACK}:${port}/?key=${key}`;
}

export interface Ui {
  readonly port: number;
  readonly key: string;
  /** Temporal's own UI server. */
  readonly temporal: PrivateAddress | null;
}

export async function serveUi(ui: Ui): Promise<Server> {
  const server = createHttpServer((request, response) => answer(request, response, ui));
  await listen(server, { host: LOOPBACK, port: ui.port });
  return server;
}

function answer(request: IncomingMessage, response: ServerResponse, ui: Ui): void {
  const { url: path = '/', method = '' } = request;
  const hosts = loopbackHosts(ui.port);
  const host = request.headers.host ?? '';
  if (!hosts.includes(host)) refuse(response, 403, `requests must be for ${hosts[0]}; open that address`);
  else if (!SAFE_METHODS.includes(method) && request.headers.origin !== `http://${host}`)
    refuse(response, 403, `only pages of ${host} can change anything`);
  else if (isSameSecret(keyInQuery(path), ui.key)) rememberKey(response, path, ui);
  else if (!isSameSecret(keyInCookie(request, ui), ui.key))
    refuse(response, 401, 'the key is missing; open the address of the UI as temper train or temper dev prints it');
  else if (ui.temporal === null) refuse(response, 503, "Temporal's UI cannot be served safely on this system");
  else forward(request, response, ui.temporal);
}

function keyInQuery(path: string): string {
  return new URLSearchParams(path.split('?')[1]).get('key') ?? '';
}

/** The browser shows the key as a cookie from now on, and no address holds it. */
function rememberKey(response: ServerResponse, path: string, ui: Ui): void {
  const [page = '/', query] = path.split('?');
  const rest = new URLSearchParams(query);
  rest.delete('key');
  // Several slashes would be the beginning of another host's address.
  const location = `/${page.replace(/^[/\\]+/, '')}${rest.size === 0 ? '' : `?${rest.toString()}`}`;
  const cookie = `${cookieName(ui)}=${ui.key}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${COOKIE_SECONDS}`;
  response.writeHead(303, { location, 'set-cookie': cookie }).end();
}

/** A cookie belongs to all ports of a host. */
function cookieName({ port }: Ui): string {
  return `temper_ui_${port}`;
}

function keyInCookie({ headers }: IncomingMessage, ui: Ui): string {
  const start = `${cookieName(ui)}=`;
  const cookie = (headers.cookie ?? '').split('; ').find((pair) => pair.startsWith(start));
  return cookie?.slice(start.length) ?? '';
}

function forward(request: IncomingMessage, response: ServerResponse, { host, port }: PrivateAddress): void {
  const { method, url: path, headers } = request;
  const upstream = send({ host, port, path, method, headers, setHost: false }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, {
      ...answered.headers,
      'x-frame-options': 'SAMEORIGIN',
      'referrer-policy': 'same-origin',
    });
    answered.on('error', () => response.destroy()).pipe(response);
  });
  upstream.on('error', (error) => refuse(response, 502, `Temporal's UI does not answer (${error.message}); try again`));
  // A long poll ends with the page that asked.
  response.on('close', () => upstream.destroy());
  request.pipe(upstream);
}

function refuse(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`);
}
