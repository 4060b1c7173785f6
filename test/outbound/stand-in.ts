/**
 * A server in the place of another system's, made from that system's published interface. It refuses fields that the
 * interface does not have, counts what was created, and misbehaves as networks and servers do: see `Fault`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';

/** `lost`: done, but the answer is lost; `twice`: delivered two times; `away`: not done; a number: refused with this status. */
export type Fault = 'lost' | 'twice' | 'away' | 429 | 500 | 503;

export interface StandInRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  /** Parts of the path that the route's pattern has groups for. */
  readonly parts: readonly string[];
  /** The body by this schema, or a refusal. */
  readonly json: <T>(schema: z.ZodType<T>) => T;
}

export type GivenRequest = Omit<StandInRequest, 'json' | 'parts'>;

export interface StandInAnswer {
  readonly status?: number;
  readonly json?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Route {
  readonly method: string;
  readonly path: RegExp;
  /** Answered without a key: a signed address. */
  readonly isOpen?: true;
  answer(request: StandInRequest): StandInAnswer | Promise<StandInAnswer>;
}

export interface StandInOptions {
  readonly key: string;
  /** Header of a request with the key; null: it needs none. Default: `Bearer KEY`. */
  readonly authorization?: string | null;
  readonly routes: readonly Route[];
  /** Asked for each request. */
  fault?: (method: string, path: string) => Fault | null;
  /** Awaited after a request was done, before its answer. */
  hold?: (request: GivenRequest) => Promise<void> | undefined;
}

export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface StandIn {
  readonly url: string;
  /** `METHOD path` of every request that came. */
  readonly requests: readonly string[];
  /** Requests against the interface, with what was wrong. */
  readonly violations: readonly string[];
  close(): Promise<void>;
}

export async function startStandIn(options: StandInOptions): Promise<StandIn> {
  const requests: string[] = [];
  const violations: string[] = [];
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      violations.push(String(error));
      response.destroy();
    });
  });
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url!, 'http://stand-in');
    const path = decodeURIComponent(pathname);
    const method = request.method!;
    requests.push(`${method} ${path}`);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const fault = options.fault?.(method, path) ?? null;
    if (typeof fault === 'number' || fault === 'away') {
      refuse(response, fault);
      return;
    }
    const given = { method, path, query: searchParams, headers: request.headers, body: Buffer.concat(chunks) };
    const answer = async () => answerOf(options, given, violations);
    const { status = 200, json = {}, headers = {} } = await answer();
    if (fault === 'twice') await answer();
    await options.hold?.(given);
    if (fault === 'lost') request.socket.destroy();
    else response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json));
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    violations,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function refuse(response: ServerResponse, fault: number | 'away'): void {
  if (fault === 'away') response.socket?.destroy();
  else response.writeHead(fault, fault === 429 ? { 'retry-after': '0.01' } : {}).end('{"error":"try again"}');
}

async function answerOf(options: StandInOptions, given: GivenRequest, violations: string[]): Promise<StandInAnswer> {
  const { method, path, headers, body } = given;
  for (const route of options.routes) {
    const parts = route.method === method ? route.path.exec(path)?.slice(1) : undefined;
    if (parts === undefined) continue;
    const { authorization = `Bearer ${options.key}` } = options;
    if (headers.authorization !== (route.isOpen ? undefined : (authorization ?? undefined)))
      return { status: 401, json: { error: 'wrong key' } };
    const json = <T>(schema: z.ZodType<T>): T => {
      const parsed = schema.safeParse(JSON.parse(body.toString()));
      if (parsed.success) return parsed.data;
      violations.push(`${method} ${path}: ${z.prettifyError(parsed.error)}`);
      throw new Refused(400, z.prettifyError(parsed.error));
    };
    try {
      return await route.answer({ ...given, parts, json });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { status: error.status, json: { error: error.message } };
    }
  }
  violations.push(`${method} ${path} is not of the interface`);
  return { status: 404, json: { error: 'not found' } };
}

/** Faults for about a third of all requests, decided by a seed. */
export function seededFaults(seed: number): (method: string, path: string) => Fault | null {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const faults: readonly (Fault | null)[] = ['lost', 'twice', 429, 500, 503];
    return faults[Math.floor((state / 2 ** 32) * 16)] ?? null;
  };
}
