/** `run@step`, on a branch b > 0 `run~b@step`: the model's name under which engines serve a checkpoint. */
import type { Checkpoint } from './contract.ts';

export type Policy = Pick<Checkpoint, 'run' | 'branch' | 'step'>;

const POLICY_NAME = /^([a-z0-9][a-z0-9._-]{0,62})(?:~([1-9][0-9]*))?@(0|[1-9][0-9]*)$/;

export function policyName({ run, branch, step }: Policy): string {
  return branch === 0 ? `${run}@${step}` : `${run}~${branch}@${step}`;
}

/** Null where the name is not a policy's: a base model answers to its own name. */
export function parsePolicyName(name: string): Policy | null {
  const match = POLICY_NAME.exec(name);
  if (match === null) return null;
  const [, run = '', branch, step] = match;
  return { run, branch: Number(branch ?? 0), step: Number(step) };
}
