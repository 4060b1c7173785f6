/** Which options of a loss act. */
import type { LossConfig, TrainConfig } from './contract.ts';
import { DEFAULT_LOSS, LOSS_DEFAULTS, LOSS_NAMES, usersOfOption } from './contract-losses.ts';
import { TemperError } from './failures.ts';

/** Why no loss option acts yet, to be put after "has no effect". */
export const ONE_PASS =
  'each step makes a single pass over what its own policy just sampled, so every ratio is 1, nothing is clipped and all losses have the same gradient';

/** Options given on top of those of the loss that they name, or of the default. */
export function fillLoss(options: Partial<LossConfig>): LossConfig {
  const { name = DEFAULT_LOSS } = options;
  if (!LOSS_NAMES.includes(name))
    throw new TemperError(
      'BadConfig',
      `loss.name must be one of ${LOSS_NAMES.join(', ')}, got ${JSON.stringify(name)}; leave loss.name out for ${DEFAULT_LOSS}`,
    );
  return { ...LOSS_DEFAULTS[name], ...options } as LossConfig;
}

/**
 * Names the loss options that would do nothing; null where there are none. Values that equal the defaults are accepted:
 * they are what is recorded. The rule of the single pass ends here once a step can make several.
 */
export function complaintAboutLoss({ loss }: Pick<TrainConfig, 'loss'>): string | null {
  const defaults = new Map<string, unknown>(Object.entries(LOSS_DEFAULTS[loss.name]));
  const changed = Object.entries(loss).filter(([option, value]) => value !== defaults.get(option));
  const unused = changed.find(([option]) => !usersOfOption(option).has(loss.name));
  if (unused !== undefined) {
    const [option, value] = unused;
    const users = [...usersOfOption(option).keys()];
    const rule = `only ${users.join(' and ')} ${users.length === 1 ? 'uses' : 'use'} it`;
    return `loss.${option} ${value} has no effect with the loss ${loss.name} (${rule}); leave loss.${option} out`;
  }
  const inert = loss.name === DEFAULT_LOSS ? changed : [['name', loss.name], ...changed];
  if (inert.length === 0) return null;
  const given = inert.map(([option, value]) => `loss.${option} ${value}`);
  const names = inert.map(([option]) => `loss.${option}`);
  return `${given.join(' and ')} ${inert.length === 1 ? 'has' : 'have'} no effect: ${ONE_PASS}; leave ${names.join(' and ')} out`;
}
