/** Which options of a loss act. */
import type { LossConfig, RunConfig, TrainConfig } from '../contract/contract.ts';
import { DEFAULT_LOSS, LOSS_DEFAULTS, LOSS_NAMES, usersOfOption } from '../contract/losses.ts';
import { badConfig } from '../contract/failures.ts';

const ONE_UPDATE =
  'with a single update, a step trains exactly what its own policy just sampled, so every ratio is 1, nothing is clipped and all losses have the same gradient; set passes or miniBatches to 2 or more, or maxStaleness to 1 or more, or leave';

/** Options given on top of those of the loss that they name, or of the default. */
export function fillLoss(options: Partial<LossConfig>): LossConfig {
  const { name = DEFAULT_LOSS } = options;
  if (!LOSS_NAMES.includes(name))
    throw badConfig(
      `loss.name must be one of ${LOSS_NAMES.join(', ')}, got ${JSON.stringify(name)}; leave loss.name out for ${DEFAULT_LOSS}`,
    );
  const defaults = LOSS_DEFAULTS[name];
  // An option of another loss that is switched off is not an error.
  const own = Object.entries(options).filter(([option, value]) => value !== null || Object.hasOwn(defaults, option));
  return { ...defaults, ...Object.fromEntries(own) };
}

/** From 1, at which all losses are the same. */
function doRatiosMove({ maxStaleness, groupsAhead, production, train: { passes, miniBatches } }: WithUpdates): boolean {
  return passes * miniBatches > 1 || maxStaleness + groupsAhead > 0 || production !== undefined;
}

/** Largest GSPO epsilon accepted: 100 × the paper's. */
const MAX_SEQUENCE_EPSILON = 0.04;

type WithUpdates = Pick<RunConfig, 'maxStaleness' | 'groupsAhead' | 'production'> & {
  train: Pick<TrainConfig, 'loss' | 'passes' | 'miniBatches'>;
};

/**
 * Names the loss options that would do nothing; null if there are none. Values that equal the defaults are accepted:
 * they are what is recorded.
 */
export function findLossProblem(config: WithUpdates): string | null {
  const { loss } = config.train;
  const defaults = new Map<string, unknown>(Object.entries(LOSS_DEFAULTS[loss.name]));
  const changed = Object.entries(loss).filter(([option, value]) => value !== defaults.get(option));
  const unused = changed.find(([option]) => !usersOfOption(option).has(loss.name));
  if (unused !== undefined) {
    const [option, value] = unused;
    const users = [...usersOfOption(option).keys()];
    const rule = `only ${users.join(', ')} ${users.length === 1 ? 'uses' : 'use'} it`;
    return `loss.${option} ${value} has no effect with the loss ${loss.name} (${rule}); leave loss.${option} out`;
  }
  if (loss.name === 'gspo' && Math.max(loss.epsilonLow, loss.epsilonHigh) > MAX_SEQUENCE_EPSILON)
    return `loss.epsilonLow and loss.epsilonHigh of gspo must be at most ${MAX_SEQUENCE_EPSILON} (the mean ratio of a sequence moves by thousandths, so a wider range never clips), got ${loss.epsilonLow} and ${loss.epsilonHigh}; try 0.0003 and 0.0004`;
  if (doRatiosMove(config)) return null;
  const inert = loss.name === DEFAULT_LOSS ? changed : [['name', loss.name], ...changed];
  if (inert.length === 0) return null;
  const given = inert.map(([option, value]) => `loss.${option} ${value}`);
  const names = inert.map(([option]) => `loss.${option}`);
  return `${given.join(' and ')} ${inert.length === 1 ? 'has' : 'have'} no effect: ${ONE_UPDATE} ${names.join(' and ')} out`;
}
