/** Endpoints of `temper review` as data: who may ask, and what answers. */
import type { Html } from '../report/html.ts';
import type { RewardDesk } from './desk.ts';
import type { ReviewKeys, KeyScope } from './keys.ts';

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
  | { readonly html: Html }
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
