/** Signed links for a mail or a chat: one for each attempt that awaits its reward, or one to all questions of a run. */
import { badConfig } from '../../core/contract/failures.ts';
import { withoutSlash } from '../../core/names/addresses.ts';
import { REVIEW_KEY_VARIABLE } from '../../core/names/door-keys.ts';
import type { Store } from '../../store/store.ts';
import type { AwaitedList } from '../../views/api/attempt-views.ts';
import { ReviewKeys } from './keys.ts';

const DAY_MS = 24 * 3_600_000;
export const DEFAULT_LINK_DAYS = 7;

interface LinkPlace {
  readonly keys: ReviewKeys;
  /** Address at which people reach `temper review`. */
  readonly base: string;
  readonly expiresAt: number;
}

function rewardLink({ keys, base, expiresAt }: LinkPlace, run: string, attempt: string): string {
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
function checkLinkBase(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  if (isPlain && /^https?:$/.test(url.protocol)) return withoutSlash(url.href);
  throw badConfig(
    `--links must be the http(s) address of temper review without user, query or fragment, got ${text}; pass --links https://rewards.example`,
  );
}

interface LinkFlags {
  readonly links: string | null;
  readonly expiresDays: number | null;
}

interface Links {
  addTo(list: AwaitedList, store: Store): Promise<AwaitedList>;
}

/** Links of `temper rewards --links`; null if none were asked for. Checked before anything is read. */
export function planLinks({ links, expiresDays }: LinkFlags, env: Readonly<NodeJS.ProcessEnv>): Links | null {
  if (links === null) return null;
  const base = checkLinkBase(links);
  const key = requireReviewKey(env, '--links');
  const expiresAt = expiryOf(expiresDays ?? DEFAULT_LINK_DAYS);
  return {
    async addTo(list, store) {
      const place = { keys: new ReviewKeys(key, await store.id()), base, expiresAt };
      if (list.byPairs === true) return { ...list, link: reviewLink(place, list.run) };
      const awaited = list.awaited.map((one) => ({ ...one, link: rewardLink(place, list.run, one.attempt) }));
      return { ...list, awaited };
    },
  };
}

/** A link lets whoever reads it try keys without asking the server: a short one would be found. */
const LEAST_KEY_CHARACTERS = 24;

/** Key in the environment, for what signs links. */
function requireReviewKey(env: Readonly<NodeJS.ProcessEnv>, what: string): string {
  const key = env[REVIEW_KEY_VARIABLE] ?? '';
  if (key === '')
    throw badConfig(
      `${what} needs the key of temper review in ${REVIEW_KEY_VARIABLE}, which is not set; ${EXPORT_KEY}, for both commands`,
    );
  checkReviewKey(key);
  return key;
}

const EXPORT_KEY = `export ${REVIEW_KEY_VARIABLE}="$(openssl rand -base64 32)"`;

export function checkReviewKey(key: string): void {
  if (key.length >= LEAST_KEY_CHARACTERS) return;
  throw badConfig(
    `${REVIEW_KEY_VARIABLE} must have at least ${LEAST_KEY_CHARACTERS} characters (links are signed with it), got ${key.length}; ${EXPORT_KEY}`,
  );
}
