import type { RunConfig } from './contract.ts';

/** With a judge and one round of replacements, each group of a smaller step takes up to 24 events of the history. */
const MOST_ONE_BY_ONE = 2000;

/** Whether Temporal does not take the groups of a step one by one: see `large-step.ts`. */
export function isLargeStep({ groupsPerStep }: Pick<RunConfig, 'groupsPerStep'>): boolean {
  return groupsPerStep > MOST_ONE_BY_ONE;
}
