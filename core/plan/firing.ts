/** The runs of a schedule: which name, seed and parent the next one has. Pure. */
import type { Checkpoint, ProductionConfig, RunConfig } from '../contract/contract.ts';
import { stepsOfPass } from './production.ts';
import { deriveSeed } from '../numbers/seeds.ts';

/** Room in a run's name of 63 characters for the number. */
export const MAX_SCHEDULE_NAME = 50;

export function firingRunName(schedule: string, number: number): string {
  return `${schedule}-${number}`;
}

/** Each firing has its own seed for scenarios and sampling, so that it does not repeat the one before. */
export function planFiring(template: RunConfig, run: string, number: number, parent: Checkpoint | null): RunConfig {
  return { ...template, run, seed: deriveSeed([template.seed, 'schedule', number]), parent };
}

/** A firing that trains recorded conversations: as many steps as they need, and no more warm-up and restarts than fit. */
export function planProductionFiring(config: RunConfig, production: ProductionConfig, epochs: number): RunConfig {
  const steps = epochs * stepsOfPass(production, config.groupsPerStep);
  const warmupSteps = Math.min(config.warmupSteps, steps - 1);
  const learningRateRestarts = Math.max(0, Math.min(config.learningRateRestarts, steps - warmupSteps - 2));
  return { ...config, production, steps, warmupSteps, learningRateRestarts };
}
