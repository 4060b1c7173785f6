/** Base model of `--base-model` or `--model`, under the name that a run records. */
import { badConfig } from '../../core/contract/failures.ts';
import { isBuiltIn, isConfigured, resolveBaseModel, type BaseModel } from '../../workers/base-models/base-model.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { knownModels } from '../../workers/base-models/known-models.ts';
import { pinBaseModel } from '../../workers/base-models/pin-base-model.ts';
import { programContext } from '../terminal/stack-events.ts';
import type { CommandEnvironment } from '../command-line/command.ts';

export type ModelContext = Pick<CommandEnvironment, 'project' | 'cwd' | 'env' | 'output' | 'signal'>;

/** Resolves the name without network access. `hasTemplate`: the model needs no chat template of its own. */
export async function readBaseModel(
  text: string,
  { project, cwd, env }: ModelContext,
  hasTemplate: boolean,
): Promise<BaseModel> {
  const { models } = await loadConfig(project, env);
  return resolveBaseModel(text, cwd, project, models, { hasTemplate });
}

/** Resolves a configured or built-in model: workers that were started elsewhere know no others. */
export async function readConfiguredModel(
  text: string,
  { project, cwd, env }: ModelContext,
  hasTemplate: boolean,
): Promise<BaseModel> {
  const { models: configured } = await loadConfig(project, env);
  const model = resolveBaseModel(text, cwd, project, configured, { hasTemplate });
  if (isConfigured(model, configured)) return model;
  const { name, models } = model;
  throw badConfig(
    `workers started later would not know --base-model ${text}; name it in temporal.config.ts (models: { ${JSON.stringify(name)}: ${JSON.stringify(models[name])} }) and pass --base-model ${name}`,
  );
}

/** Pins a model of the hub to a commit and downloads it. `recorded`: its name in an existing run or a parent. */
export async function pinModel(model: BaseModel, recorded: string | null, context: ModelContext): Promise<BaseModel> {
  const config = await loadConfig(context.project, context.env);
  return pinBaseModel(model, recorded, { config, ...programContext(context) });
}

/** Folder of a base model (null for a built-in one), or null if only a remote GPU worker has the model. */
export async function findLocalModel(
  name: string,
  models: Readonly<Record<string, string>>,
  { project, env }: Pick<CommandEnvironment, 'project' | 'env'>,
): Promise<{ readonly source: string | null } | null> {
  const config = await loadConfig(project, env);
  const source = { ...knownModels(project, config), ...models }[name] ?? null;
  return config.engine.url !== null || (source === null && !isBuiltIn(name)) ? null : { source };
}

/** Commands for which a checkpoint may name the model. `sources`: the end of the list of what to pass, after `pocket`. */
export function requireBaseModel(
  { 'base-model': model }: { readonly 'base-model': string | null },
  sources = ' to try it on this machine, a folder',
): string {
  if (model !== null) return model;
  throw badConfig(
    `--base-model is missing; pass --base-model pocket${sources}, an OWNER/NAME of the Hugging Face hub, or s3://BUCKET/PREFIX`,
  );
}
