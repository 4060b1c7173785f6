import type { RunConfig } from './contract.ts';

type Schedule = Pick<
  RunConfig,
  'learningRate' | 'learningRateSchedule' | 'finalLearningRateShare' | 'warmupSteps' | 'steps'
>;

/** Share of the rate over the way from the first full step (0) to the last step (1). */
const DECAYS: Record<RunConfig['learningRateSchedule'], (done: number, final: number) => number> = {
  constant: () => 1,
  linear: (done, final) => 1 - (1 - final) * done,
  cosine: (done, final) => final + ((1 - final) * (1 + Math.cos(Math.PI * done))) / 2,
};

/**
 * The learning rate of a step (1 … steps): a linear warm-up to the full rate, then the schedule, which reaches
 * `finalLearningRateShare` exactly at the last step. Twelve digits, so that the wire shows 0.0045 and not its rounding.
 */
export function planLearningRate(config: Schedule, step: number): number {
  const { learningRate, learningRateSchedule, warmupSteps, finalLearningRateShare, steps } = config;
  const firstFull = warmupSteps + 1;
  const done = steps > firstFull ? (step - firstFull) / (steps - firstFull) : 0;
  const share = step < firstFull ? step / firstFull : DECAYS[learningRateSchedule](done, finalLearningRateShare);
  return Number((learningRate * share).toPrecision(12));
}
