/** Losses on the wire: a member of the union for each, and its defaults. `docs/training.md` says how to add one. */
import { z } from 'zod';

// Distances from 1, for every loss: the ratio is clipped to [1 − epsilonLow, 1 + epsilonHigh].
const epsilonLow = z.number().min(0).max(1);
const epsilonHigh = z.number().min(0);
const dualClip = z.number().gt(1).nullable();

// Recorded with these three losses although they do not use it: recorded runs keep their bytes. A new loss leaves it out.
const unusedEpsilon = z.number().min(0).max(0);
const unusedDualClip = z.null();
const UNUSED: ReadonlySet<unknown> = new Set([unusedEpsilon, unusedDualClip]);

export const CispoLoss = z
  .strictObject({ name: z.literal('cispo'), epsilonLow, epsilonHigh, dualClip: unusedDualClip })
  .meta({ id: 'CispoLoss' });

export const PpoLoss = z
  .strictObject({ name: z.literal('ppo'), epsilonLow, epsilonHigh, dualClip })
  .meta({ id: 'PpoLoss' });

export const ImportanceSamplingLoss = z
  .strictObject({
    name: z.literal('importance_sampling'),
    epsilonLow: unusedEpsilon,
    epsilonHigh: unusedEpsilon,
    dualClip: unusedDualClip,
  })
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
  cispo: { name: 'cispo', epsilonLow: 1, epsilonHigh: 4, dualClip: null },
  ppo: { name: 'ppo', epsilonLow: 0.2, epsilonHigh: 0.28, dualClip: 3 },
  gspo: { name: 'gspo', epsilonLow: 3e-4, epsilonHigh: 4e-4 },
  dppo: { name: 'dppo', maxShift: 0.2, logRatioPenalty: 1e-3 },
  sapo: { name: 'sapo', tauPositive: 1, tauNegative: 1.05 },
  importance_sampling: { name: 'importance_sampling', epsilonLow: 0, epsilonHigh: 0, dualClip: null },
};

export const LOSS_NAMES: readonly LossName[] = LossConfig.options.map(({ shape }) => shape.name.value);

/** The losses that use an option, each with its rule for it. */
export function usersOfOption(option: string): ReadonlyMap<LossName, z.ZodType> {
  const rules = LossConfig.options.map(({ shape }): [LossName, z.ZodType | undefined] => [
    shape.name.value,
    (shape as Record<string, z.ZodType>)[option],
  ]);
  return new Map(
    rules.filter((entry): entry is [LossName, z.ZodType] => entry[1] !== undefined && !UNUSED.has(entry[1])),
  );
}
