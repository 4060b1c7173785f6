import type { LoraConfig } from '../../core/contract.ts';
import { differingLoraOption } from '../../core/lora-difference.ts';
import { flagOf } from './run-flags.ts';

/** The first option of LoRA that two configurations have otherwise, as its flag and their values; null where there is none. */
export function loraDifference(
  one: Partial<LoraConfig>,
  other: Partial<LoraConfig>,
  free: readonly (keyof LoraConfig)[] = [],
): { flag: string; one: string; other: string } | null {
  const found = differingLoraOption(one, other, free);
  return found && { flag: `--${flagOf(`train.lora.${found.option}`)}`, one: found.one, other: found.other };
}
