/** What a run begins with that goes on from another run's checkpoint: the checkpoint, and the model under it. */
import type { RunConfig } from '../../core/contract.ts';
import type { CheckpointName } from '../../core/policy-name.ts';
import { findConfiguredCheckpoint } from '../../store/records/find-policy.ts';
import type { Store } from '../../store/store.ts';
import { registeredOnly, resolveBaseModel, type BaseModel } from '../../workers/base-models/base-model.ts';
import { loadConfig } from '../../workers/config/config.ts';
import type { ModelContext } from '../command-line/base-model.ts';
import type { ChatTemplate } from '../command-line/chat-template.ts';
import type { Parent } from './check-fits.ts';

/** `latest` and `best` move on with their run; a run that exists goes on with the checkpoint that it began with. */
export async function findParent(store: Store, name: CheckpointName, recorded: RunConfig | null): Promise<Parent> {
  const began = recorded?.parent ?? null;
  const isSameRun = began?.run === name.run && (name.branch ?? began.branch) === began.branch;
  if (began === null || !isSameRun || typeof name.step === 'number') return findConfiguredCheckpoint(store, name);
  return { ...(await findConfiguredCheckpoint(store, began)), checkpoint: began };
}

/** `named`: as `--base-model` has it; null: the parent's. It is not settled yet. */
export async function readParentModel(
  { config }: Parent,
  named: string | null,
  template: ChatTemplate | null,
  { project, cwd, env }: ModelContext,
): Promise<BaseModel> {
  const { models } = await loadConfig(project, env);
  const hasTemplate = template !== null || config.rollout.chatTemplateSha256 !== undefined;
  const resolved = resolveBaseModel(named ?? config.baseModel, cwd, project, models, { hasTemplate });
  // The parent may have been pulled from somebody else's store: its word registers no model here.
  return named === null ? registeredOnly(resolved, models) : resolved;
}
