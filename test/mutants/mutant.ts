import type { Tier } from '../run/tier.ts';

/**
 * One broken line each, and the narrowest test that must notice. A mutant that survives is a missing test; an anchor
 * that is gone, or stands twice, is an error that names its mutant.
 */
export interface Mutant {
  /** The promise that no longer holds. */
  readonly name: string;
  readonly file: string;
  /** Must occur exactly once. */
  readonly find: string;
  readonly replace: string;
  readonly test: string;
  /** Vitest alone: a part of the title of the test that must notice, if other tests of the file take long. */
  readonly title?: string;
  /** Whose tests must notice: `landing` (the default) also means that the test notices without the nightly tier's variable. */
  readonly tier?: Tier;
}

/** Each row breaks a line of the file, which the test must notice: the broken promise, what is found, what replaces it. */
export function breaking(
  file: string,
  test: string,
  rows: readonly (readonly [name: string, find: string, replace: string])[],
  options: Pick<Mutant, 'title' | 'tier'> = {},
): Mutant[] {
  return rows.map(([name, find, replace]) => ({ name, file, find, replace, test, ...options }));
}
