/** Rewards that are given from outside: by people, other systems, or reviewers who compare attempts. */

import type { AwaitedRewards } from '../contract/contract.ts';

/** Judges of such runs, as runs and verdicts name them. A model's name has a slash. */
export const EXTERNAL = 'external';
export const REVIEW = 'review';

/** Wakes a run that waits for rewards: it carries nothing, since the store has what was given. */
export const REWARDS_SIGNAL = 'rewards';

/** Whether the rewards of a run's groups are awaited after they were played. */
export function isAwaited(judge: string | null): boolean {
  return judge === EXTERNAL || judge === REVIEW;
}

/** `12 of 64 rewards, missing in 2 of 8 open groups (6 of 8 that step 3 needs are complete) since …` */
export function describeAwaited(awaited: AwaitedRewards): string {
  const { step, missing, attempts, waiting, groups, since, nextDeadline, complete, needed } = awaited;
  const deadline = nextDeadline === null ? '' : `; the next group is decided at ${nextDeadline} with what it has`;
  const where = `${groups} open groups (${complete} of ${needed} that step ${step} needs are complete)`;
  return `${missing} of ${attempts} rewards, missing in ${waiting} of ${where} since ${since}${deadline}`;
}
