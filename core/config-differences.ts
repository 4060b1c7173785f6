/** What differs between two configurations, in words a person can act on. */
import type { RunConfig } from './contract.ts';

/** One line per key, as `train.lora.rank: 16 → 8` (recorded → asked for); empty where they are equal. */
export function describeConfigDifferences(recorded: RunConfig, asked: RunConfig): string[] {
  const before = flatten(recorded, '');
  const after = flatten(asked, '');
  const keys = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  const changed = keys.filter((key) => before.get(key) !== after.get(key));
  return changed.map((key) => `${key}: ${before.get(key) ?? 'absent'} → ${after.get(key) ?? 'absent'}`);
}

function flatten(value: unknown, path: string): Map<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map([[path, JSON.stringify(value)]]);
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return new Map(entries.flatMap(([key, member]) => [...flatten(member, path === '' ? key : `${path}.${key}`)]));
}
