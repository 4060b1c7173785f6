import { CONTACT_MS } from '../core/contract/wire-constants.ts';

/**
 * Whether the Temporal server answers this process. To a worker that is cut off it gives no sign: the server hands its
 * work to another one after a heartbeat timeout, and calls made since then would be paid twice.
 */
export interface Contact {
  /** The longest time after `since` in which the server gave no answer, the present one included. */
  silenceMs(since: number): number;
}

/** Silences that are remembered; shorter ones than two questions apart are none. */
const KEPT = 32;

export function createContact(clock: () => number = Date.now): Contact & { answered(askedAt: number): void } {
  let last = clock();
  const silences: { from: number; to: number }[] = [];
  return {
    /** From when it was asked: heartbeats that were sent earlier may have been lost. */
    answered(askedAt) {
      if (askedAt - last > 2 * CONTACT_MS) silences.push({ from: last, to: askedAt });
      if (silences.length > KEPT) silences.shift();
      last = askedAt;
    },
    silenceMs(since) {
      const now = clock();
      // A clock that was ahead and is corrected has recorded times that have not come yet; the same holds for pauses.
      const past = silences.filter(({ to }) => to > since && to <= now);
      return Math.max(now - Math.max(last, since), ...past.map(({ from, to }) => to - Math.max(from, since)));
    },
  };
}
