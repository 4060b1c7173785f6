/** Losses on the wire: a member of the union for each, and its defaults. `docs/training.md` says how to add one. */
import { z } from 'zod';

// Distances from 1, for every loss: the ratio is clipped to [1 − epsilonLow, 1 + epsilonHigh].
const epsilonLow = z.number().min(0).max(1);
const epsilonHigh = z.number().min(0);

export const CispoLoss = z
  .strictObject({ name: z.literal('cispo'), epsilonLow, epsilonHigh })
  .meta({ id: 'CispoLoss' });

export const PpoLoss = z
  .strictObject({ name: z.literal('ppo'), epsilonLow, epsilonHigh, dualClip: z.number().gt(1).nullable() })
  .meta({ id: 'PpoLoss' });

export const ImportanceSamplingLoss = z
  .strictObject({ name: z.literal('importance_sampling') })
  .meta({ id: 'ImportanceSamplingLoss' });

export const GspoLoss = z.strictObject({ name: z.literal('gspo'), epsilonLow, epsilonHigh }).meta({ id: 'GspoLoss' });

/** `maxShift`: how far a token's probability may move; `logRatioPenalty`: the factor of (log ρ)². */
export const DppoLoss = z
  .strictObject({ name: z.literal('dppo'), maxShift: z.number().positive().lt(1), logRatioPenalty: z.number().min(0) })
  .meta({ id: 'DppoLoss' });

/** How fast the gradient fades, for positive and for negative advantages. */
export const SapoLoss = z
  .strictObject({ name: z.literal('sapo'), tauPositive: z.number().positive(), tauNegative: z.number().positive() })
  .meta({ id: 'SapoLoss' });

export const LossConfig = z
  .discriminatedUnion('name', [CispoLoss, PpoLoss, GspoLoss, DppoLoss, SapoLoss, ImportanceSamplingLoss])
  .meta({ id: 'LossConfig' });
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
  const users = LossConfig.options.filter(({ shape }) => Object.hasOwn(shape, option));
  return new Map(users.map(({ shape }) => [shape.name.value, (shape as Record<string, z.ZodType>)[option]!]));
}
