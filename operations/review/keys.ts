/**
 * Keys that are derived from the review key: each opens one thing, a reward of one attempt or the review of one run, and
 * nothing is kept of them. The store's id is part of the signature, so that a key is of no use to another store.
 */
import { createHmac } from 'node:crypto';
import { isSameSecret } from '../../play/transports/http-server.ts';

export interface KeyScope {
  /** `link`: a page in a mail or a chat; `run`: a reviewer of a whole run. */
  readonly kind: 'link' | 'run';
  readonly run: string;
  /** Null for a whole run. */
  readonly attempt: string | null;
  readonly expiresAt: number;
}

type SignedText = [kind: string, run: string, attempt: string | null, expiresAt: number];

const TOKEN = /^([A-Za-z0-9_-]{1,400})\.([A-Za-z0-9_-]{43})$/;
const PURPOSE = 'temper review, version 1';

export class ReviewKeys {
  readonly #secret: Buffer;
  readonly #storeId: string;

  constructor(reviewKey: string, storeId: string) {
    this.#secret = createHmac('sha256', reviewKey).update(PURPOSE).digest();
    this.#storeId = storeId;
  }

  sign({ kind, run, attempt, expiresAt }: KeyScope): string {
    const text = Buffer.from(JSON.stringify([kind, run, attempt, expiresAt])).toString('base64url');
    return `${text}.${this.#seal(text)}`;
  }

  /** Null for a token that was not signed here, or for something else. It may have expired. */
  read(token: string, kind: KeyScope['kind']): KeyScope | null {
    const [, text, seal] = TOKEN.exec(token) ?? [];
    if (text === undefined || seal === undefined || !isSameSecret(seal, this.#seal(text))) return null;
    const [signed, run, attempt, expiresAt] = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as SignedText;
    return signed === kind ? { kind, run, attempt, expiresAt } : null;
  }

  #seal(text: string): string {
    return createHmac('sha256', this.#secret).update(`${this.#storeId}\n${text}`).digest('base64url');
  }
}
