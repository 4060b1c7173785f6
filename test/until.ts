/** Waiting for what other processes do. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Of a busy machine; on a quiet one, no wait takes a tenth of it. */
const WITHIN_MS = 800_000;
const POLL_MS = 10;

export class Timeout extends Error {}

/** Polls fast: the points that tests wait for pass within milliseconds. */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  withinMs = WITHIN_MS,
  pollMs = POLL_MS,
): Promise<void> {
  for (const end = Date.now() + withinMs; !(await isTrue());) {
    if (Date.now() > end) throw new Timeout(`waited ${withinMs / 1000} s in vain until ${what}`);
    await sleep(pollMs);
  }
}
