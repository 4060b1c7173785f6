/** Plans the steps of a script's own loop. Pure and independent of run names, as all plans. */
import type { Checkpoint, GroupRef, RunConfig, SupervisedStep, TrainInput } from '../../core/contract/contract.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { hashTraining, nameless, planRoles } from '../../core/plan/step.ts';
import { deriveSeed } from '../../core/numbers/seeds.ts';

/** Groups are sampled to be trained, or to be measured alone. */
export type Split = 'train' | 'val';

export interface LoopGroup {
  split: Split;
  /** Step that trains the group, or the step after which the group is measured. */
  step: number;
  /** Its place among those that the script gathered for this step. */
  group: number;
  attempts: number;
  metadata: Record<string, string | number | boolean | null>;
}

export interface PlannedLoopGroup extends LoopGroup {
  scenarioId: string;
  seed: number;
  inputsSha256: string;
}

/** All that can be known of a group before a script's own code plays it. */
export function planLoopGroup(config: RunConfig, policy: Checkpoint | null, group: LoopGroup): PlannedLoopGroup {
  const scenarioId = String(group.metadata['scenarioId'] ?? group.metadata['id'] ?? `group-${group.group}`);
  const seed = deriveSeed([config.seed, 'loop', group.split]);
  const { rollout } = config;
  const place = { ...group, branch: 0, scenarioId, seed };
  const hashed = { ...place, rollout, policy: policy && nameless(policy), ...planRoles(config) };
  return { ...group, scenarioId, seed, inputsSha256: hashOf(hashed) };
}

export interface LoopTraining {
  step: number;
  parent: Checkpoint;
  /** None if the step trains examples. */
  groups: GroupRef[];
  supervised?: SupervisedStep;
}

export function planLoopTraining(
  config: RunConfig,
  { learningRate, train }: Pick<TrainInput, 'learningRate' | 'train'>,
  { parent, ...step }: LoopTraining,
): TrainInput {
  const { baseModel, seed } = config;
  const roles = step.supervised === undefined ? planRoles(config) : {};
  const hashed = { ...step, learningRate, train, branch: 0, baseModel, seed, ...roles };
  return { ...hashed, run: config.run, parent, inputsSha256: hashTraining(hashed, parent) };
}
