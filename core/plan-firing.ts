/** The runs of a schedule: which name, seed and parent the next one has. Pure. */
import type { Checkpoint, RunConfig } from './contract.ts';
import { deriveSeed } from './seeds.ts';

/** Room in a run's name of 63 characters for the number. */
export const MAX_SCHEDULE_NAME = 50;

export function firingRunName(schedule: string, number: number): string {
  return `${schedule}-${number}`;
}

/** Each firing deals and samples by a seed of its own, or it would play the day before again. */
export function planFiring(template: RunConfig, run: string, number: number, parent: Checkpoint | null): RunConfig {
  return { ...template, run, seed: deriveSeed([template.seed, 'schedule', number]), parent };
}
