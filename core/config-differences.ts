/** What differs between two configurations, in words a person can act on. */
import type { RunConfig } from './contract.ts';
import { policyName } from './policy-name.ts';

/**
 * One line per key, as `train.lora.rank: 16 → 8` (recorded → asked for); empty where they are equal. What is absent is
 * null: configurations recorded before a field was there lack it.
 */
export function describeConfigDifferences(recorded: RunConfig, asked: RunConfig): string[] {
  const before = flatten(withParentNamed(recorded), '');
  const after = flatten(withParentNamed(asked), '');
  const keys = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  const pairs = keys.map((key) => ({ key, old: before.get(key) ?? 'null', fresh: after.get(key) ?? 'null' }));
  return pairs.filter(({ old, fresh }) => old !== fresh).map(({ key, old, fresh }) => `${key}: ${old} → ${fresh}`);
}

/** A checkpoint is one thing to a person, not five fields. */
function withParentNamed({ parent, ...config }: RunConfig): object {
  const { klReference } = config.train;
  const train = klReference === undefined ? config.train : { ...config.train, klReference: klReference.sha256 };
  if (!parent) return { ...config, train };
  return { ...config, train, parent: `${policyName(parent)}, manifest ${parent.manifestSha256}` };
}

function flatten(value: unknown, path: string): Map<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map([[path, JSON.stringify(value)]]);
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return new Map(entries.flatMap(([key, member]) => [...flatten(member, path === '' ? key : `${path}.${key}`)]));
}
