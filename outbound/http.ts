/**
 * Calls of other systems' HTTP interfaces. An outage is TargetUnavailable, a refused key BadConfig, and any other refusal
 * DeploymentFailed; no key ever stands in a message.
 */
import { badConfig, TemperError } from '../core/contract/failures.ts';
import { parseJson } from '../core/text/json-text.ts';
import { readBounded } from '../core/text/read-bounded.ts';

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
  readonly expected?: readonly number[];
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
  if (isOk || request.expected?.includes(answer.status)) return answer;
  throw explainRefusal(caller, request, answer);
}

async function send(caller: HttpCaller, request: HttpRequest): Promise<TargetAnswer> {
  const { key, fetch: ask, signal } = caller;
  const { method = 'GET', url, json, body, stream, headers, timeoutMs = TIMEOUT_MS } = request;
  const timeout = AbortSignal.timeout(timeoutMs + Math.ceil((body?.byteLength ?? 0) / BYTES_PER_MS));
  try {
    const response = await ask(url, {
      method,
      signal: AbortSignal.any([signal, timeout]),
      redirect: 'error',
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      ...(body === undefined ? {} : { body }),
      ...(stream === undefined ? {} : { body: stream.open(), duplex: 'half' }),
    });
    const bytes = await readBounded(response);
    const text = new TextDecoder().decode(bytes);
    return { status: response.status, text, bytes, json: parseJson(text), headers: response.headers };
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw explainSilence(caller, request, cause);
  }
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
  if (status === 429 || status >= 500 || status === 408)
    return unavailable(caller, what, retryAfterMs(headers.get('retry-after')));
  if (status === 401 || status === 403) {
    const remedy = keyVariable === null ? 'check the rights' : `check the key in ${keyVariable}, and its rights`;
    return badConfig(`${system} refused the request (${what}); ${remedy}`);
  }
  return new TemperError('DeploymentFailed', `${system} refused the request (${what})`);
}

function unavailable(
  { system, remedy = 'Temper tries again' }: HttpCaller,
  what: string,
  retryMs: number | null = null,
): TemperError {
  const options = retryMs === null ? {} : { retryAfterMs: retryMs };
  return new TemperError('TargetUnavailable', `${system} is unavailable (${what}); ${remedy}`, options);
}

/** Seconds, or a date. */
function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const seconds = Number(header);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) && ms > 0 ? ms : null;
}

/** Without its query: that of a presigned address is a key. */
function placeOf({ method = 'GET', url }: HttpRequest): string {
  const { origin, pathname } = new URL(url);
  return `${method} ${origin}${pathname}`;
}

function messageOf(text: string): string {
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
