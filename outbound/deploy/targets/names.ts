/** Names of checkpoints at targets, which allow fewer characters than `run~branch@step`. */
import type { Policy } from '../../../core/names/policy-name.ts';

/** `step12`, on a branch b > 0 `branch1-step12`: tags and aliases. */
export function stepName({ branch, step }: Pick<Policy, 'branch' | 'step'>): string {
  return branch === 0 ? `step${step}` : `branch${branch}-step${step}`;
}

const MOST = 63;

/** `demo-step12`, in lowercase letters, digits and dashes. */
export function modelName(checkpoint: Pick<Policy, 'run' | 'branch' | 'step'>, policy: string): string {
  const other = /:(.+)/.exec(policy)?.[1];
  const tail = [other, stepName(checkpoint)].filter((part) => part !== undefined).join('-');
  const run = dashed(checkpoint.run).slice(0, MOST - tail.length - 1);
  return `${run.replace(/-$/, '')}-${dashed(tail)}`;
}

const dashed = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
