/** Signed links for a mail or a chat: one for each attempt that awaits its reward. */
import { withoutSlash } from '../../core/base-url.ts';
import { UsageError } from '../command-line/errors.ts';
import type { ReviewKeys } from './keys.ts';

const DAY_MS = 24 * 3_600_000;
export const DEFAULT_LINK_DAYS = 7;

export interface LinkPlace {
  readonly keys: ReviewKeys;
  /** Address at which people reach `temper review`. */
  readonly base: string;
  readonly expiresAt: number;
}

export function rewardLink({ keys, base, expiresAt }: LinkPlace, run: string, attempt: string): string {
  return `${base}/r/${keys.sign({ kind: 'link', run, attempt, expiresAt })}`;
}

/** Opens the questions of a run, one after the other. */
export function reviewLink({ keys, base, expiresAt }: LinkPlace, run: string): string {
  return `${base}/review/${keys.sign({ kind: 'run', run, attempt: null, expiresAt })}`;
}

export function expiryOf(days: number, now = Date.now()): number {
  return now + days * DAY_MS;
}

/** Without the slash at its end. */
export function checkLinkBase(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  if (isPlain && /^https?:$/.test(url.protocol)) return withoutSlash(url.href);
  throw new UsageError(
    `--links must be the http(s) address of temper review without user, query or fragment, got ${text}; pass --links https://rewards.example`,
  );
}
