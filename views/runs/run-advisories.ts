/** All advisories of a run's finished steps: one list for `temper ui`, `temper mcp`, `temper show` and the report. */
import type { RunState, StepSummary } from '../../core/contract.ts';
import { isNamedReward } from '../../core/named-rewards.ts';
import { byLevel, findAdvisories, type FoundAdvisory } from './advisories.ts';
import { findDominantReward, type RewardedAttempt } from './dominant-reward.ts';

/** Attempts over which rewards by name are compared: the newest ones. */
export const COMPARED_ATTEMPTS = 400;

export interface AdvisedRun {
  readonly state: Pick<RunState, 'evals'> | null;
  readonly steps: readonly StepSummary[];
}

/** `newestAttempts` is asked only where there are rewards to compare. */
export async function listAdvisories(
  run: AdvisedRun,
  newestAttempts: () => Promise<readonly RewardedAttempt[]>,
): Promise<FoundAdvisory[]> {
  const attempts = hasSeveralRewards(run.steps) ? await newestAttempts() : [];
  const found = [...findAdvisories(run.steps, run.state?.evals), findDominantReward(attempts)];
  return byLevel(found.filter((each) => each !== null));
}

function hasSeveralRewards(steps: readonly StepSummary[]): boolean {
  return Object.keys(steps.at(-1)?.metrics ?? {}).filter(isNamedReward).length > 1;
}
