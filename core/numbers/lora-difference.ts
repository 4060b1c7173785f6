/** Describes why two adapters differ in shape: neither can replace the other. */
import type { LoraConfig } from '../contract/contract.ts';

export interface LoraDifference {
  readonly option: string;
  /** Value as JSON. */
  readonly one: string;
  readonly other: string;
}

/** The first option that differs; null if there is none. */
export function differingLoraOption(
  one: Partial<LoraConfig>,
  other: Partial<LoraConfig>,
  /** Options that say nothing of what an adapter computes. */
  free: readonly (keyof LoraConfig)[] = [],
): LoraDifference | null {
  const [left, right] = [one, other].map(
    (lora) => new Map<string, unknown>(Object.entries({ layers: 'all', ...lora })),
  );
  for (const option of new Set([...left!.keys(), ...right!.keys()])) {
    const [its, others] = [left!.get(option), right!.get(option)].map((value) => JSON.stringify(value));
    if (its !== others && !free.some((name) => name === option))
      return { option, one: its ?? 'unset', other: others ?? 'unset' };
  }
  return null;
}
