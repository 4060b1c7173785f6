/** Finds the branch of a run's step. Every rollback makes a branch; nothing of an older one is overwritten. */
import type { Branch, RunState } from '../contract/contract.ts';

/** The way from branch 0 to a branch, oldest first; each of its members takes over after its `fromStep`. */
export function planLineage(branches: readonly Branch[], branch: number): Branch[] {
  const last = branches.find((candidate) => candidate.branch === branch);
  return last === undefined ? [] : [...planLineage(branches, last.fromBranch), last];
}

export function branchOfStep(lineage: readonly Branch[], step: number): number {
  return lineage.findLast(({ fromStep }) => step > fromStep)?.branch ?? 0;
}

/** `branch 2, from step 3 of branch 1, from step 7 of branch 0`; null on branch 0. */
export function describeLineage(lineage: readonly Branch[]): string | null {
  const newest = lineage.at(-1);
  if (newest === undefined) return null;
  const ways = lineage.toReversed().map(({ fromBranch, fromStep }) => `from step ${fromStep} of branch ${fromBranch}`);
  return [`branch ${newest.branch}`, ...ways].join(', ');
}

/** State of a run that was never steered or judged. */
export const NOT_STEERED: Pick<RunState, 'pause' | 'changes' | 'lineage' | 'judging'> = {
  pause: null,
  changes: [],
  lineage: [],
  judging: null,
};
