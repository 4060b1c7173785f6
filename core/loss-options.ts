/** Losses with their defaults, and which of their options act. */
import type { LossConfig, TrainConfig } from './contract.ts';

export const LOSSES: Readonly<Record<LossConfig['name'], LossConfig>> = {
  cispo: { name: 'cispo', epsilonLow: 1, epsilonHigh: 4, dualClip: null },
  ppo: { name: 'ppo', epsilonLow: 0.2, epsilonHigh: 0.28, dualClip: 3 },
  importance_sampling: { name: 'importance_sampling', epsilonLow: 0, epsilonHigh: 0, dualClip: null },
};

export const DEFAULT_LOSS = 'cispo';

type RangeOption = Exclude<keyof LossConfig, 'name'>;

/** What bounds the ratio, by loss. */
const RANGES: Readonly<Record<LossConfig['name'], readonly RangeOption[]>> = {
  cispo: ['epsilonLow', 'epsilonHigh'],
  ppo: ['epsilonLow', 'epsilonHigh', 'dualClip'],
  importance_sampling: [],
};
const RANGE_OPTIONS: readonly RangeOption[] = ['epsilonLow', 'epsilonHigh', 'dualClip'];

/** Why no loss option acts yet, to be put after "has no effect". */
export const ONE_PASS =
  'each step makes a single pass over what its own policy just sampled, so every ratio is 1, nothing is clipped and all losses have the same gradient';

/**
 * Names the loss options that would do nothing; null where there are none. Values that equal the defaults are accepted:
 * they are what is recorded. The rule of the single pass ends here once a step can make several.
 */
export function complaintAboutLoss({ loss }: Pick<TrainConfig, 'loss'>): string | null {
  const changed = RANGE_OPTIONS.filter((option) => loss[option] !== LOSSES[loss.name][option]);
  const unused = changed.find((option) => !RANGES[loss.name].includes(option));
  if (unused !== undefined) {
    const rule = unused === 'dualClip' ? 'only ppo uses it' : 'it clips nothing';
    return `loss.${unused} ${loss[unused]} has no effect with the loss ${loss.name} (${rule}); leave loss.${unused} out`;
  }
  const inert: readonly (keyof LossConfig)[] = loss.name === DEFAULT_LOSS ? changed : ['name', ...changed];
  if (inert.length === 0) return null;
  const [given, names] = [inert.map((option) => `loss.${option} ${loss[option]}`), inert.map((each) => `loss.${each}`)];
  return `${given.join(' and ')} ${inert.length === 1 ? 'has' : 'have'} no effect: ${ONE_PASS}; leave ${names.join(' and ')} out`;
}
