import type { RunConfig } from './contract.ts';

type Schedule = Pick<
  RunConfig,
  'learningRate' | 'learningRateSchedule' | 'finalLearningRateShare' | 'warmupSteps' | 'steps'
>;

/**
 * The learning rate of a step (1 … steps): a linear warm-up to the full rate, then the schedule, which reaches
 * `finalLearningRateShare` exactly at the last step. Twelve digits, so that the wire shows 0.0045 and not its rounding.
 */
export function planLearningRate(config: Schedule, step: number): number {
  const { learningRate, warmupSteps } = config;
  const share = step <= warmupSteps ? step / (warmupSteps + 1) : decay(config, step);
  return Number((learningRate * share).toPrecision(12));
}

function decay(config: Schedule, step: number): number {
  const { finalLearningRateShare: final, warmupSteps, steps } = config;
  const first = warmupSteps + 1;
  const done = steps > first ? (step - first) / (steps - first) : 0;
  switch (config.learningRateSchedule) {
    case 'constant':
      return 1;
    case 'linear':
      return 1 - (1 - final) * done;
    case 'cosine':
      return final + ((1 - final) * (1 + Math.cos(Math.PI * done))) / 2;
  }
}
