/**
 * Ids of traces and spans. They follow from the place in the store, so that what is sent twice is one, and nobody needs
 * to remember what was sent.
 */
import { hash } from 'node:crypto';

import type { SpanPlace } from './otlp/span.ts';

type Part = string | number;

function traceIdOf(...parts: readonly Part[]): string {
  return hash('sha256', JSON.stringify(['trace', ...parts])).slice(0, 32);
}

export function spanIdOf(...parts: readonly Part[]): string {
  return hash('sha256', JSON.stringify(['span', ...parts])).slice(0, 16);
}

/** Root of the trace of this place. */
export function rootOf(...parts: readonly Part[]): SpanPlace {
  return { traceId: traceIdOf(...parts), spanId: spanIdOf(...parts) };
}

/** A number from 0 to before 1 that these parts always give. */
export function shareOf(...parts: readonly Part[]): number {
  return Number.parseInt(hash('sha256', JSON.stringify(['share', ...parts])).slice(0, 12), 16) / 2 ** 48;
}
