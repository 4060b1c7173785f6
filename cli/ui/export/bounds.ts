/** How much an export holds: a site that a person can send to others. */
export const EXPORT_BOUNDS = {
  /** Steps whose attempts it has: the first, the last, and as many between. */
  stepsWithAttempts: 8,
  groupsPerStep: 6,
  attemptsPerGroup: 32,
  evalsWithAttempts: 4,
  evalAttempts: 24,
  /** Rows of the list of attempts. */
  rows: 500,
  /** Bytes of answers of one run; after that no attempts are added. */
  runBytes: 40 * 1024 ** 2,
} as const;
