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
}
