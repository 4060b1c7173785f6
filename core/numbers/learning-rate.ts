import type { RunConfig } from '../contract/contract.ts';

type Schedule = Pick<
  RunConfig,
  'learningRate' | 'learningRateSchedule' | 'finalLearningRateShare' | 'learningRateRestarts' | 'warmupSteps' | 'steps'
>;

/** Share of the rate over the way from the first full step (0) to the end (1). */
const DECAYS: Record<RunConfig['learningRateSchedule'], (done: number, final: number) => number> = {
  constant: () => 1,
  linear: (done, final) => 1 - (1 - final) * done,
  cosine: (done, final) => final + ((1 - final) * (1 + Math.cos(Math.PI * done))) / 2,
};

/**
 * The learning rate of a step (1 … steps): a linear warm-up to the full rate, then the schedule, which reaches
 * `finalLearningRateShare` exactly at the last step; a share of 0 one step later, or the last step would train nothing.
 * With restarts it goes that way several times, each as long as the others (SGDR, arXiv 1608.03983). Twelve digits, so
 * that the wire shows 0.0045 and not its rounding.
 */
export function planLearningRate(config: Schedule, step: number): number {
  const { learningRate, learningRateSchedule, warmupSteps, finalLearningRateShare, steps } = config;
  const firstFull = warmupSteps + 1;
  const decays = config.learningRateRestarts + 1;
  const end = finalLearningRateShare === 0 ? steps + 1 : steps;
  const onTheWay = end > firstFull ? ((step - firstFull) * decays) / (end - firstFull) : 0;
  const done = step >= end ? Math.min(onTheWay, 1) : onTheWay % 1;
  const share = step < firstFull ? step / firstFull : DECAYS[learningRateSchedule](done, finalLearningRateShare);
  return Number((learningRate * share).toPrecision(12));
}
