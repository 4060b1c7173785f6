/** Base model of `--base-model` or `--model`, under the name that a run records. */
import { resolveBaseModel, type BaseModel } from '../../workers/base-model.ts';
import { loadConfig } from '../../workers/config.ts';
import { cacheFolder } from '../../workers/folders.ts';
import { pinBaseModel } from '../../workers/python/pin-base-model.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { ChatTemplate } from './chat-template.ts';
import type { CommandEnvironment } from '../command-line/command.ts';

export type ModelContext = Pick<CommandEnvironment, 'project' | 'cwd' | 'env' | 'output' | 'signal'>;

/** Resolves the name without network access. With a `template`, the model needs no chat template of its own. */
export async function readBaseModel(
  text: string,
  { project, cwd, env }: ModelContext,
  template: ChatTemplate | null,
): Promise<BaseModel> {
  const { models } = await loadConfig(project, env);
  return resolveBaseModel(text, cwd, project, models, { hasTemplate: template !== null });
}

/** Pins a model of the hub to a commit and downloads it. `recorded`: its name in an existing run or a parent. */
export async function settleBaseModel(
  model: BaseModel,
  recorded: string | null,
  { project, env, output, signal }: ModelContext,
): Promise<BaseModel> {
  const onEvent = createEventPrinter((line) => output.errorLine(line));
  const config = await loadConfig(project, env);
  return pinBaseModel(model, recorded, { config, env, cache: cacheFolder(env), signal, onEvent });
}
