/** Findings of a verification: objects checked, and problems. */
import { isUnreadable } from '../../../core/contract/failures.ts';

const CHECKS = [
  'run files',
  'manifests',
  'parents',
  'adapters',
  'optimizer states',
  'rollouts',
  'verdicts',
  'evaluations',
  'inputs',
] as const;
export type Check = (typeof CHECKS)[number];

export interface Problem {
  /** The object's key in the store. */
  object: string;
  finding: string;
  remedy: string;
}

interface Tally {
  checked: number;
  /** Removed on purpose, and recorded as such. */
  pruned: number;
  problems: number;
}

export class Findings {
  readonly tallies = new Map<Check, Tally>(CHECKS.map((check) => [check, { checked: 0, pruned: 0, problems: 0 }]));
  readonly problems: Problem[] = [];
  /** Objects that could not be checked, and why; no problem of the run. */
  readonly notes: string[] = [];
  readonly restore: string;

  constructor(run: string) {
    this.restore = `restore it from a copy (temper checkpoints pull ${run} STORE)`;
  }

  count(check: Check, of: 'checked' | 'pruned' = 'checked'): void {
    this.tallies.get(check)![of] += 1;
  }

  /** Keeps the first finding of an object, which names its fault; later ones follow from it. */
  problem(check: Check, object: string, finding: string, remedy: string = this.restore): void {
    if (this.problems.some((known) => known.object === object)) return;
    this.tallies.get(check)!.problems += 1;
    this.problems.push({ object, finding, remedy });
  }

  /** A step that was made again, and came out otherwise. */
  recomputed(policy: string, finding: string): void {
    const remedy = 'the trained weights do not match the recorded inputs: roll back to the step before it';
    this.problems.push({ object: policy, finding, remedy });
  }

  isBroken(object: string): boolean {
    return this.problems.some((known) => known.object === object);
  }

  /** Errors while reading are problems of the object read; an outage ends the verification. */
  async attempt<T>(check: Check, object: string, look: () => Promise<T>): Promise<T | null> {
    try {
      return await look();
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      const [finding = error.message, remedy] = error.message.split(/; (?=restore|upgrade)/);
      this.problem(check, object, finding, error.type === 'LaterVersion' ? remedy : undefined);
      return null;
    }
  }
}
