/** What a script prints of the local stack's events unless it takes them itself: the important ones, to stderr. */
import type { StackEvent } from '../events.ts';

/** A start as short as this is no news. */
const SHORT_WAIT_SECONDS = 15;

export function printEvent(event: StackEvent): void {
  const text = describe(event);
  if (text !== null) process.stderr.write(`temper: ${text}\n`);
}

function describe(event: StackEvent): string | null {
  if (event.kind === 'notice') return event.message;
  if (event.kind === 'died') return `${event.name} died (${event.exit}); restarting it`;
  if (event.kind === 'progress') return event.finished ? event.message : null;
  if (event.kind !== 'waiting' || event.seconds % SHORT_WAIT_SECONDS !== 0 || event.seconds === 0) return null;
  return `waiting for ${event.for}, ${event.seconds} s of at most ${event.limitSeconds} s`;
}
