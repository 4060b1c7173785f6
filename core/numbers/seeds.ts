/** Seeds: 48 bits of a hash, so that every language can hold one exactly in a number. */
import { sha256 } from '@noble/hashes/sha2.js';

import { canonicalJson } from '../text/hashes.ts';

/** Which sampling it is. No run name, time or host: a copy of a run under another name draws the same. */
export interface CallPlace {
  /** The base seed that the plan gave. */
  seed: number;
  branch: number;
  step: number;
  scenario: number;
  attempt: number;
  /** Hash of the request. */
  key: string;
  /** How many times this attempt had issued this very request before. */
  occurrence: number;
}

export function deriveSeed(parts: readonly (string | number | null)[]): number {
  const hash = sha256(new TextEncoder().encode(canonicalJson(parts)));
  return hash.subarray(0, 6).reduce((seed, byte) => seed * 256 + byte, 0);
}

export function callSeed({ seed, branch, step, scenario, attempt, key, occurrence }: CallPlace): number {
  return deriveSeed([seed, branch, step, scenario, attempt, key, occurrence]);
}

/** Chris Doty-Humphrey's sfc32 in [0, 1): what an agent gets as `random`. */
export function createRandom(seed: number): () => number {
  let a = 0x9e3779b9;
  let b = Math.floor(seed / 2 ** 32) | 0;
  let c = (seed % 2 ** 32) | 0;
  let counter = 1;
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let warmUp = 0; warmUp < 12; warmUp++) next();
  return next;
}

export function shuffle<T>(items: readonly T[], seed: number): T[] {
  const random = createRandom(seed);
  return items
    .map((item) => ({ item, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
