/**
 * Calls of other systems' HTTP interfaces. An outage is TargetUnavailable, or what the caller names; a refused key is
 * BadConfig, and any other refusal DeploymentFailed. No key ever stands in a message.
 */
import { badConfig, type FailureType, TemperError } from '../contract/failures.ts';
import { parseJson } from './json-text.ts';
import { readBounded } from './read-bounded.ts';

export interface HttpCaller {
  /** Whose interface it is, in messages. */
  readonly system: string;
  /** Environment variable with the key, in messages; null: none is sent. */
  readonly keyVariable: string | null;
  readonly key: string | null;
  /** Further values that no message may show. */
  readonly secrets?: readonly string[];
  /** What is done about an outage; by default, `Temper tries again`. */
  readonly remedy?: string;
  /** Type of an outage. */
  readonly outage?: FailureType;
  /** For files on servers of others, which get no key. By default an answer that names another address is an error. */
  readonly followsRedirects?: boolean;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
}

export interface HttpRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'PATCH';
  readonly url: string;
  /** Sent as JSON. */
  readonly json?: unknown;
  readonly body?: Uint8Array;
  /** A body that is too large for memory. */
  readonly stream?: { readonly bytes: number; open(): ReadableStream<Uint8Array> };
  readonly headers?: Readonly<Record<string, string>>;
  /** Refusals that are answers. */
  readonly expected?: readonly number[] | 'all';
  /** Takes the body of an answer of 2xx, as it comes. */
  readonly save?: (body: ReadableStream<Uint8Array>) => Promise<void>;
  /** For answers that take long to compute. */
  readonly timeoutMs?: number;
}

export interface TargetAnswer {
  readonly status: number;
  readonly text: string;
  readonly bytes: Uint8Array;
  /** Undefined unless the answer is JSON. */
  readonly json: unknown;
  readonly headers: Headers;
}

const TIMEOUT_MS = 60_000;
/** For bodies: 1 MB a second at least. */
const BYTES_PER_MS = 1000;
const MOST_TEXT = 300;
const LEAST_SECRET = 8;

/** Key of a system from the environment, or BadConfig naming the variable. */
export function requireKey(env: NodeJS.ProcessEnv, variable: string, system: string): string {
  const key = env[variable];
  if (key) return key;
  throw badConfig(
    `${system} needs a key in ${variable}, which is not set in the environment of the worker; export it where temper dev or temper worker starts`,
  );
}

/** Answers of 2xx, and those that the request expects. */
export async function callHttp(caller: HttpCaller, request: HttpRequest): Promise<TargetAnswer> {
  if (!/^https?:\/\//i.test(request.url) || !URL.canParse(request.url))
    throw badConfig(
      `the address of ${caller.system} must begin with http:// or https://, got ${JSON.stringify(request.url.slice(0, 40))}; correct it in the target's settings, or in the variable that it is taken from`,
    );
  const answer = await send(caller, request);
  const isOk = answer.status >= 200 && answer.status < 300;
  if (isOk || request.expected === 'all' || request.expected?.includes(answer.status)) return answer;
  throw explainRefusal(caller, request, answer);
}

async function send(caller: HttpCaller, request: HttpRequest): Promise<TargetAnswer> {
  const { fetch: ask, signal } = caller;
  const { url, body, timeoutMs = TIMEOUT_MS, save } = request;
  const timeout = AbortSignal.timeout(timeoutMs + Math.ceil((body?.byteLength ?? 0) / BYTES_PER_MS));
  try {
    const response = await ask(url, { ...initOf(caller, request), signal: AbortSignal.any([signal, timeout]) });
    const { status, ok, headers, body: sent } = response;
    if (save !== undefined && ok && sent !== null) {
      await save(sent);
      return { status, headers, text: '', bytes: new Uint8Array(), json: undefined };
    }
    const bytes = await readBounded(response);
    const text = new TextDecoder().decode(bytes);
    return { status, headers, text, bytes, json: parseJson(text) };
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw cause instanceof TemperError ? cause : explainSilence(caller, request, cause);
  }
}

function initOf({ key, followsRedirects = false }: HttpCaller, request: HttpRequest): RequestInit {
  const { method = 'GET', json, body, stream, headers } = request;
  return {
    method,
    redirect: followsRedirects ? 'follow' : 'error',
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
    ...(stream === undefined ? {} : { body: stream.open(), duplex: 'half' }),
  };
}

/** `cause`: what `fetch` threw. */
export function explainSilence(caller: HttpCaller, request: HttpRequest, cause: unknown): TemperError {
  const { key, secrets = [] } = caller;
  const reason = withoutSecrets(reasonOf(cause), [key, ...secrets]);
  return unavailable(caller, `${placeOf(request)} did not answer (${reason})`);
}

export function explainRefusal(
  caller: HttpCaller,
  request: HttpRequest,
  { status, text, headers }: Pick<TargetAnswer, 'status' | 'text' | 'headers'>,
): TemperError {
  const { system, keyVariable, key, secrets = [] } = caller;
  const sent = request.headers?.['authorization']?.split(' ').at(-1);
  const said = withoutSecrets(messageOf(text), [key, sent, ...secrets]).slice(0, MOST_TEXT);
  const what = `${placeOf(request)} answered ${status}${said && `: ${said}`}`;
  if (status === 429 || status >= 500 || status === 408) return unavailable(caller, what, retryAfterMs(headers));
  if (status === 401 || status === 403) {
    const remedy = keyVariable === null ? 'check the rights' : `check the key in ${keyVariable}, and its rights`;
    return badConfig(`${system} refused the request (${what}); ${remedy}`);
  }
  return new TemperError('DeploymentFailed', `${system} refused the request (${what})`);
}

function unavailable(
  { system, outage = 'TargetUnavailable', remedy = 'Temper tries again' }: HttpCaller,
  what: string,
  retryMs: number | null = null,
): TemperError {
  const options = retryMs === null ? {} : { retryAfterMs: retryMs };
  return new TemperError(outage, `${system} is unavailable (${what}); ${remedy}`, options);
}

/** Seconds, or a date; or as the Hugging Face hub says it, `RateLimit: "api";r=0;t=56`. */
function retryAfterMs(headers: Headers): number | null {
  const header = headers.get('retry-after') ?? /(?:^|;)\s*t=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1];
  if (header === undefined) return null;
  const seconds = Number(header);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) && ms >= 0 ? ms : null;
}

/** Without its query: that of a presigned address is a key. */
function placeOf({ method = 'GET', url }: HttpRequest): string {
  const { origin, pathname } = new URL(url);
  return `${method} ${origin}${pathname}`;
}

/** A server's own words. */
export function messageOf(text: string): string {
  const json = parseJson(text);
  const { message, error, detail } = (typeof json === 'object' && json !== null ? json : {}) as Record<string, unknown>;
  const inner = typeof error === 'object' && error !== null ? (error as Record<string, unknown>)['message'] : error;
  const said = [inner, message, detail].find((each) => typeof each === 'string');
  return (said ?? text).replaceAll(/\s+/g, ' ').trim();
}

/** A server may repeat what it was sent. */
export function withoutSecrets(text: string, secrets: readonly (string | null | undefined)[]): string {
  const known = secrets.filter((each): each is string => typeof each === 'string' && each.length >= LEAST_SECRET);
  const hidden = known.reduce((hiding, secret) => hiding.replaceAll(secret, '[key]'), text);
  return hidden.replaceAll(/([?&](?:X-Amz-[A-Za-z-]+|Signature|sig|token)=)[^&\s"']+/gi, '$1[key]');
}

function reasonOf(cause: unknown): string {
  const { message, cause: deeper } = cause as { message?: string; cause?: { code?: string; message?: string } };
  return deeper?.code ?? deeper?.message ?? message ?? String(cause);
}
