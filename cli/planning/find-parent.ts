/** What a run starts from: a checkpoint of another run or a PEFT adapter, and what of it must stay the same. */
import { resolve } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import type { Checkpoint, RunConfig } from '../../core/contract/contract.ts';
import { differingLoraOption } from '../../core/numbers/lora-difference.ts';
import { type CheckpointName, policyName } from '../../core/names/policy-name.ts';
import { findConfiguredCheckpoint, type ConfiguredCheckpoint } from '../../store/records/runs/find-policy.ts';
import {
  isOfModel,
  PEFT_CONFIG_FILE,
  readPeftAdapter,
  type PeftAdapter,
} from '../../store/records/runs/peft-adapter.ts';
import { requireUnpruned } from '../../store/records/runs/pruned.ts';
import { readCommit } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { registeredOnly, resolveBaseModel, type BaseModel } from '../../workers/base-models/base-model.ts';
import { loadConfig } from '../../workers/config/config.ts';
import type { ModelContext } from './base-model.ts';
import type { ChatTemplate } from './chat-template.ts';
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
  throw badConfig(`--base-model must be ${own} (${reasonOf(parent)}), got ${baseModel}; pass --base-model ${own}`);
}

/** The adapter's shape must be the parent's. */
export function checkSameShape(parent: Parent, config: RunConfig): void {
  const { config: recorded } = parent;
  const because = reasonOf(parent);
  if (config.train.lora === null && recorded.train.lora !== null)
    throw badConfig(`--full-fine-tuning must stay off (${because}); leave it out`);
  if (config.train.lora !== null && recorded.train.lora === null)
    throw badConfig(
      `--full-fine-tuning must stay on (${because}); pass it, and leave the flags of LoRA (--lora-…) out`,
    );
  const found = differingLoraOption(recorded.train.lora ?? {}, config.train.lora ?? {});
  if (found !== null)
    throw badConfig(`${loraFlag(found)} must stay ${found.one} (${because}), got ${found.other}; leave it out`);
}

function reasonOf({ checkpoint, config }: Parent): string {
  return `the run continues the ${config.train.lora === null ? 'weights' : 'adapter'} of ${policyName(checkpoint)}`;
}

/** `--adapter FOLDER`, whose two files go into the store under their hashes; null if none was given. */
export async function readStartAdapter(text: string | null, cwd: string): Promise<PeftAdapter | null> {
  return text === null ? null : readPeftAdapter(resolve(cwd, text), '--adapter');
}

/** Shape and base model of the run must be those of the adapter. */
export function checkStartAdapter(adapter: PeftAdapter | null, config: RunConfig): void {
  if (adapter === null) return;
  const { folder, lora, baseModel } = adapter;
  if (!isOfModel(adapter, config.baseModel))
    throw badConfig(
      `--base-model must be the model that --adapter ${folder} was trained on, ${baseModel}, got ${config.baseModel}; pass that one, or correct base_model_name_or_path in its ${PEFT_CONFIG_FILE} if both are the same model`,
    );
  const found = differingLoraOption(lora, config.train.lora ?? {}, ['dropout']);
  if (found !== null)
    throw badConfig(
      `${loraFlag(found)} must stay ${found.one} (the run begins with --adapter ${folder}), got ${found.other}; leave it out`,
    );
}
