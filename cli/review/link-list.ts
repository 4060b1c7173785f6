/** Links of `temper rewards --links`: for each attempt that waits, one to its page in `temper review`; for a run that is reviewed by pairs, one to all. */
import type { Store } from '../../store/store.ts';
import { UsageError } from '../command-line/errors.ts';
import type { AwaitedList } from './awaited-list.ts';
import { ReviewKeys } from './keys.ts';
import { checkLinkBase, DEFAULT_LINK_DAYS, expiryOf, reviewLink, rewardLink } from './links.ts';
import { requireReviewKey } from './plan-review.ts';

interface LinkFlags {
  readonly links: string | null;
  readonly 'expires-days': number | null;
}

interface Links {
  addTo(list: AwaitedList, store: Store): Promise<AwaitedList>;
}

/** Null if none were asked for. Checked before anything is read. */
export function planLinks(flags: LinkFlags, env: Readonly<NodeJS.ProcessEnv>): Links | null {
  const days = flags['expires-days'];
  if (flags.links === null) {
    if (days === null) return null;
    throw new UsageError('--expires-days must come with --links, otherwise it has no effect; pass --links URL');
  }
  const base = checkLinkBase(flags.links);
  const key = requireReviewKey(env, '--links');
  const expiresAt = expiryOf(days ?? DEFAULT_LINK_DAYS);
  return {
    async addTo(list, store) {
      const place = { keys: new ReviewKeys(key, await store.id()), base, expiresAt };
      if (list.byPairs === true) return { ...list, link: reviewLink(place, list.run) };
      const awaited = list.awaited.map((one) => ({ ...one, link: rewardLink(place, list.run, one.attempt) }));
      return { ...list, awaited };
    },
  };
}
