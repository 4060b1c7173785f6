/**
 * A step of more groups than Temporal takes one by one (51,200 events of a history, 2 MiB of an activity's input): each
 * activity plays several groups and reads its inputs from the store. Results and hashes are those of a step of any
 * size.
 */
import type { PlayGroupsInput, RolloutInput, RunConfig, TrainInput } from './contract.ts';
import { hashOf } from './hashes.ts';
import { isLargeStep } from './is-large-step.ts';

/** Most activities of a step that are pending at once: Temporal refuses more than 2,000 of one workflow. */
export const PENDING_ACTIVITIES = 500;

/** The groups of a plan as few activities play them, in plan order. */
export function planBundles(plan: readonly Omit<RolloutInput, 'inputsSha256'>[]): PlayGroupsInput[] {
  const size = Math.max(1, Math.ceil(plan.length / PENDING_ACTIVITIES));
  return Array.from({ length: Math.ceil(plan.length / size) }, (_, index) => {
    const bundled = plan.slice(index * size, (index + 1) * size);
    const { group: _group, scenario: _scenario, seed: _seed, seats: _seats, ...shared } = bundled[0]!;
    const ofOne = ({ group, scenario, seed, seats }: (typeof bundled)[number]) => {
      return { group, scenario, seed, ...(seats && { seats }) };
    };
    return { ...shared, groups: bundled.map(ofOne) };
  });
}

/** Replaces a large step's list of groups with its length and hash. */
export function withoutLongList(config: Pick<RunConfig, 'groupsPerStep'>, training: TrainInput): TrainInput {
  if (!isLargeStep(config)) return training;
  const { groups } = training;
  return { ...training, groups: [], groupList: { count: groups.length, sha256: hashOf(groups) } };
}
