/** Waiting for what other processes do. */
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 10;

export class Timeout extends Error {}

/** Polls fast: the points that tests wait for pass within milliseconds. */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  withinMs = 300_000,
  pollMs = POLL_MS,
): Promise<void> {
  for (const end = Date.now() + withinMs; !(await isTrue());) {
    if (Date.now() > end) throw new Timeout(`waited ${withinMs / 1000} s in vain until ${what}`);
    await sleep(pollMs);
  }
}
