/** Parent of a run that starts from another run's checkpoint: the checkpoint, its base model, and what must stay the same. */
import type { Checkpoint, RunConfig } from '../../core/contract.ts';
import { differingLoraOption } from '../../core/lora-difference.ts';
import { type CheckpointName, policyName } from '../../core/policy-name.ts';
import { findConfiguredCheckpoint, type ConfiguredCheckpoint } from '../../store/records/find-policy.ts';
import { requireUnpruned } from '../../store/records/pruned.ts';
import { readCommit } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { registeredOnly, resolveBaseModel, type BaseModel } from '../../workers/base-models/base-model.ts';
import { loadConfig } from '../../workers/config/config.ts';
import type { ModelContext } from './base-model.ts';
import type { ChatTemplate } from './chat-template.ts';
import { UsageError } from '../command-line/errors.ts';
import { loraFlag } from './run-flags.ts';

/** An existing run keeps the checkpoint that it started from, because `latest`, `best`, `production` and the line of a run move. */
export async function findParent(store: Store, name: CheckpointName, recorded: RunConfig | null): Promise<Parent> {
  const began = recorded?.parent ?? null;
  if (began === null || !mayName(name, began)) {
    const parent = await findConfiguredCheckpoint(store, name);
    await requireUnpruned(store, parent.checkpoint, (await readCommit(store, parent.checkpoint))!);
    return parent;
  }
  return { ...(await findConfiguredCheckpoint(store, began)), checkpoint: began };
}

/** A run's production may be a checkpoint of any run. */
function mayName({ run, branch, step }: CheckpointName, began: Checkpoint): boolean {
  if (branch !== null && branch !== began.branch) return false;
  return typeof step === 'number'
    ? run === began.run && step === began.step
    : step === 'production' || run === began.run;
}

/** `named`: value of `--base-model`; null for the parent's model. The revision is not pinned yet. */
export async function readParentModel(
  { config }: Parent,
  named: string | null,
  template: ChatTemplate | null,
  { project, cwd, env }: ModelContext,
): Promise<BaseModel> {
  const { models } = await loadConfig(project, env);
  const hasTemplate = template !== null || config.rollout.chatTemplateSha256 !== undefined;
  const resolved = resolveBaseModel(named ?? config.baseModel, cwd, project, models, { hasTemplate });
  // A parent from another store must not register a model here.
  return named === null ? registeredOnly(resolved, models) : resolved;
}

export type Parent = Pick<ConfiguredCheckpoint, 'checkpoint' | 'config'>;

/** The base model, already pinned, must be the parent's: an adapter only works on its own base model. */
export function checkSameBase(parent: Parent, { baseModel }: RunConfig): void {
  const { baseModel: own } = parent.config;
  if (own === baseModel) return;
  throw new UsageError(`--base-model must be ${own} (${reasonOf(parent)}), got ${baseModel}; pass --base-model ${own}`);
}

/** The adapter's shape must be the parent's. */
export function checkSameShape(parent: Parent, config: RunConfig): void {
  const { config: recorded } = parent;
  const because = reasonOf(parent);
  if (config.train.lora === null && recorded.train.lora !== null)
    throw new UsageError(`--full-fine-tuning must stay off (${because}); leave it out`);
  if (config.train.lora !== null && recorded.train.lora === null)
    throw new UsageError(
      `--full-fine-tuning must stay on (${because}); pass it, and leave the flags of LoRA (--lora-…) out`,
    );
  const found = differingLoraOption(recorded.train.lora ?? {}, config.train.lora ?? {});
  if (found !== null)
    throw new UsageError(`${loraFlag(found)} must stay ${found.one} (${because}), got ${found.other}; leave it out`);
}

function reasonOf({ checkpoint, config }: Parent): string {
  return `the run continues the ${config.train.lora === null ? 'weights' : 'adapter'} of ${policyName(checkpoint)}`;
}
