/** Endpoints of `temper review` as data: who may ask, what answers, and how a body is read. */
import { showValue } from '../../core/contract/failures.ts';
import { HttpRefusal } from '../../play/transports/http-server.ts';
import type { RewardDesk } from './desk.ts';
import type { ReviewKeys, KeyScope } from '../../operations/review/keys.ts';
import type { Page } from './pages/page.ts';

export interface Asked {
  /** Groups of the path's pattern, decoded. */
  readonly parts: readonly string[];
  readonly headers: Pick<Headers, 'get'>;
  readonly query: URLSearchParams;
  /** Empty for GET. */
  readonly body: string;
  /** KeyScope of the sender's token; null for the review key itself. */
  readonly scope: KeyScope | null;
  readonly desk: RewardDesk;
  readonly keys: ReviewKeys;
}

export type Reply = { readonly status: number; readonly headers?: Readonly<Record<string, string>> } & (
  | { readonly json: object }
  | { readonly page: Page }
);

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: RegExp;
  /** Form of the answer, refusals included. */
  readonly kind: 'json' | 'page';
  /**
   * `key`: the review key in a header. `link` and `run`: a signed token, the first part of the path. A GET changes
   * nothing, because mail scanners and previews follow links.
   */
  readonly access: 'key' | KeyScope['kind'];
  answer(this: void, asked: Asked): Promise<Reply>;
}

type Fields = Readonly<Record<string, unknown>>;

/** An object with no other members than these. */
export function readFields(body: string, names: readonly string[]): Fields {
  const value = parseJson(body);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw wrong(`a body must be a JSON object, such as {"reward": 0.7}, got ${showValue(value)}`);
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown === undefined) return value as Fields;
  throw wrong(`a body may have the members ${names.join(', ')}, not ${showValue(unknown)}; remove it`);
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // Python writes these where a number is none.
    if (/\b(NaN|Infinity)\b/.test(body))
      throw wrong(`numbers must be finite, got ${showValue(body.trim())}; send a finite number`);
    throw new HttpRefusal(
      400,
      `a body must be JSON, got ${showValue(body.trim())}; send {"reward": 0.7}`,
      'invalid_json',
    );
  }
}

/** Null if it is absent, null or blank; whoever gives the reward checks anything else. */
export function readText(fields: Fields, name: string): string | null {
  const value = fields[name] ?? null;
  return typeof value === 'string' ? value.replaceAll('\r\n', '\n').trim().toWellFormed() || null : (value as null);
}

/** Other APIs have it in the header; the member is for clients that cannot set one. */
export function readIdempotencyKey({ headers }: Pick<Asked, 'headers'>, fields: Fields): string | null {
  const sent = headers.get('idempotency-key')?.trim() || null;
  const member = readText(fields, 'idempotencyKey');
  if (sent === null || member === null || sent === member) return sent ?? member;
  throw wrong('the header Idempotency-Key and the member idempotencyKey must be equal, got two keys; send one of them');
}

export function readForm({ headers, body }: Pick<Asked, 'headers' | 'body'>): Fields {
  const type = headers.get('content-type') ?? '';
  if (!type.startsWith('application/x-www-form-urlencoded'))
    throw new HttpRefusal(415, 'this address takes the form of its page; open the link in a browser', 'content_type');
  return Object.fromEntries(new URLSearchParams(body));
}

export function wrong(message: string): HttpRefusal {
  return new HttpRefusal(422, message, 'invalid_value');
}
