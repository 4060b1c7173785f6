import { largest, smallest } from '../../core/statistics.ts';

/** Which attempts of a group are sent: a share of them by their ids, and always failures, the best and the worst. */

export type SampledBy = 'share' | 'failure' | 'best' | 'worst';

interface Candidate {
  /** From 0 to before 1, by the attempt's id: see `shareOf`. */
  readonly draw: number;
  readonly reward: number | null;
}

/** Reasons by index; undefined for an attempt that is left out. Of equal rewards, the first attempt is taken. */
export function sampleAttempts(attempts: readonly Candidate[], share: number): (SampledBy | undefined)[] {
  const rewards = attempts.map(({ reward }) => reward).filter((reward) => reward !== null);
  const [highest, lowest] = [largest(rewards), smallest(rewards)];
  const best = attempts.findIndex(({ reward }) => reward === highest);
  const worst = attempts.findIndex(({ reward }) => reward === lowest);
  return attempts.map(({ draw, reward }, index) => {
    if (reward === null) return 'failure';
    if (index === best) return 'best';
    if (index === worst) return 'worst';
    return draw < share ? 'share' : undefined;
  });
}
