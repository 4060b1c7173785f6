/** Losses on the wire: a member of the union for each, and its defaults. `docs/internal/losses.md` says how to add one. */
import { z } from 'zod';

import { optionsOf } from './options.ts';

const ofLoss = optionsOf('loss');

const epsilonLow = ofLoss(
  z.number().min(0).max(1),
  'lower end of the range that the ratio is clipped to, as a distance from 1',
  { default: "[the loss's own](training.md#losses)" },
);
const epsilonHigh = ofLoss(z.number().min(0), 'upper end of that range, as a distance from 1', {
  default: "[the loss's own](training.md#losses)",
});

export const CispoLoss = z
  .strictObject({ name: z.literal('cispo'), epsilonLow, epsilonHigh })
  .meta({ id: 'CispoLoss' });

export const PpoLoss = z
  .strictObject({
    name: z.literal('ppo'),
    epsilonLow,
    epsilonHigh,
    dualClip: ofLoss(z.number().gt(1).nullable(), "`ppo`'s bound for negative advantages, or `none`", {
      none: true,
      default: '3 for `ppo`',
    }),
  })
  .meta({ id: 'PpoLoss' });

export const ImportanceSamplingLoss = z
  .strictObject({ name: z.literal('importance_sampling') })
  .meta({ id: 'ImportanceSamplingLoss' });

export const GspoLoss = z.strictObject({ name: z.literal('gspo'), epsilonLow, epsilonHigh }).meta({ id: 'GspoLoss' });

export const DppoLoss = z
  .strictObject({
    name: z.literal('dppo'),
    maxShift: ofLoss(z.number().positive().lt(1), "how far `dppo` lets a token's probability move", {
      default: '0.2 for `dppo`',
    }),
    logRatioPenalty: ofLoss(z.number().min(0), "factor of `dppo`'s squared log ratio", { default: '0.001 for `dppo`' }),
  })
  .meta({ id: 'DppoLoss' });

export const SapoLoss = z
  .strictObject({
    name: z.literal('sapo'),
    tauPositive: ofLoss(z.number().positive(), 'how fast the gradient of `sapo` fades, for positive advantages', {
      default: '1 for `sapo`',
    }),
    tauNegative: ofLoss(z.number().positive(), 'the same for negative advantages', { default: '1.05 for `sapo`' }),
  })
  .meta({ id: 'SapoLoss' });

export const LossConfig = ofLoss(
  z.discriminatedUnion('name', [CispoLoss, PpoLoss, GspoLoss, DppoLoss, SapoLoss, ImportanceSamplingLoss]),
  '`cispo`; with `--passes` or `--mini-batches` above 1, or `--max-staleness` above 0, also `ppo`, `gspo`, `dppo`, `sapo`, `importance_sampling`',
  { more: 'see [losses](training.md#losses)' },
).meta({ id: 'LossConfig' });
export type LossConfig = z.infer<typeof LossConfig>;
export type LossName = LossConfig['name'];

export const DEFAULT_LOSS = 'cispo' satisfies LossName;

export const LOSS_DEFAULTS: { readonly [Name in LossName]: Extract<LossConfig, { name: Name }> } = {
  cispo: { name: 'cispo', epsilonLow: 1, epsilonHigh: 4 },
  ppo: { name: 'ppo', epsilonLow: 0.2, epsilonHigh: 0.28, dualClip: 3 },
  gspo: { name: 'gspo', epsilonLow: 3e-4, epsilonHigh: 4e-4 },
  dppo: { name: 'dppo', maxShift: 0.2, logRatioPenalty: 1e-3 },
  sapo: { name: 'sapo', tauPositive: 1, tauNegative: 1.05 },
  importance_sampling: { name: 'importance_sampling' },
};

export const LOSS_NAMES: readonly LossName[] = LossConfig.options.map(({ shape }) => shape.name.value);

/** The losses that use an option, each with its rule for it. */
export function usersOfOption(option: string): ReadonlyMap<LossName, z.ZodType> {
  const shapes = LossConfig.options.map(({ shape }) => new Map<string, z.ZodType>(Object.entries(shape)));
  return new Map(
    LOSS_NAMES.flatMap((name, at) => {
      const rule = shapes[at]!.get(option);
      return rule === undefined ? [] : [[name, rule]];
    }),
  );
}
