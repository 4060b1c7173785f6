/** Describes how two configurations differ, in words a person can act on. */
import type { RunConfig } from '../contract/contract.ts';
import { policyName } from '../names/policy-name.ts';

/** Lines such as `train.lora.rank: 16 → 8` (recorded → requested); empty if they are equal. Absent is null. */
export function describeConfigDifferences(recorded: RunConfig, asked: RunConfig): string[] {
  const isOtherKind = (recorded.train.lora === null) !== (asked.train.lora === null);
  const before = flatten(named(recorded, isOtherKind), '');
  const after = flatten(named(asked, isOtherKind), '');
  const keys = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  const pairs = keys.map((key) => ({ key, old: before.get(key) ?? 'null', fresh: after.get(key) ?? 'null' }));
  return pairs.filter(({ old, fresh }) => old !== fresh).map(({ key, old, fresh }) => `${key}: ${old} → ${fresh}`);
}

/** All settings by their paths, as JSON. */
export function configSettings(config: RunConfig): ReadonlyMap<string, string> {
  return flatten(named(config, false), '');
}

/** A checkpoint is one thing to a person, not five fields; an adapter and all weights have no option in common. */
function named({ parent, ...config }: RunConfig, isOtherKind: boolean): object {
  const { klReference, lora, ...others } = config.train;
  const train = {
    ...others,
    ...(klReference === undefined ? {} : { klReference: klReference.sha256 }),
    lora: isOtherKind ? (lora === null ? 'all weights' : 'a LoRA adapter') : lora,
  };
  if (!parent) return { ...config, train };
  return { ...config, train, parent: `${policyName(parent)}, manifest ${parent.manifestSha256}` };
}

function flatten(value: unknown, path: string): Map<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map([[path, JSON.stringify(value)]]);
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return new Map(entries.flatMap(([key, member]) => [...flatten(member, path === '' ? key : `${path}.${key}`)]));
}
