/** Where two adapters have another shape: none can take the other's place. */
import type { LoraConfig } from '../../core/contract.ts';
import { NEUTRAL_LORA } from '../../core/run-defaults.ts';
import { flagOf } from './run-flags.ts';

/** What an option is called that a configuration does not have. */
const ABSENT = { ...NEUTRAL_LORA, layers: 'all' };

/** The first option that they have otherwise, as its flag and their values; null where there is none. */
export function loraDifference(
  one: Partial<LoraConfig>,
  other: Partial<LoraConfig>,
  /** Options that say nothing of what an adapter computes. */
  free: readonly (keyof LoraConfig)[] = [],
): { flag: string; one: string; other: string } | null {
  const [left, right] = [one, other].map((lora) => new Map<string, unknown>(Object.entries({ ...ABSENT, ...lora })));
  for (const key of new Set([...left!.keys(), ...right!.keys()])) {
    const [its, others] = [left!.get(key), right!.get(key)].map((value) => JSON.stringify(value));
    if (its !== others && !free.some((name) => name === key))
      return { flag: `--${flagOf(`train.lora.${key}`)}`, one: its ?? 'unset', other: others ?? 'unset' };
  }
  return null;
}
