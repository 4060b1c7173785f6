/** `--chat-template FILE`: a Jinja template in the place of the model's own. Its text goes into the store; all else names its hash. */
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { BUILT_IN_MODELS, MAX_CHAT_TEMPLATE_BYTES } from '../../core/wire-constants.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { loadConfig } from '../../workers/config.ts';
import { cacheFolder } from '../../workers/folders.ts';
import { knownModels } from '../../workers/local-stack/known-models.ts';
import { checkChatTemplate } from '../../workers/python/check-chat-template.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { Surroundings } from './command.ts';
import { UsageError } from './errors.ts';

export interface ChatTemplate {
  readonly file: string;
  readonly bytes: Uint8Array;
  readonly sha256: string;
}

/** Null where none was given. */
export async function readChatTemplate(text: string | null, cwd: string): Promise<ChatTemplate | null> {
  if (text === null) return null;
  const file = resolve(cwd, text);
  const bytes = await readSmallFile(file);
  if (!isText(bytes))
    throw new UsageError(`--chat-template must be text in UTF-8, ${file} is not; pass a Jinja template`);
  return { file, bytes, sha256: hashBytes(bytes) };
}

async function readSmallFile(file: string): Promise<Uint8Array> {
  try {
    const found = await stat(file);
    if (!found.isFile()) throw new UsageError(`--chat-template must be a file, ${file} is none; pass a Jinja template`);
    if (found.size > 0 && found.size <= MAX_CHAT_TEMPLATE_BYTES) return await readFile(file);
    throw new UsageError(
      `--chat-template must have 1 to ${MAX_CHAT_TEMPLATE_BYTES} bytes, ${file} has ${found.size}; pass a Jinja template`,
    );
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new UsageError(`--chat-template must be a file that can be read, got ${file} (${reason}); correct it`, {
      cause: error,
    });
  }
}

function isText(bytes: Uint8Array): boolean {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim() !== '';
  } catch {
    return false;
  }
}

interface Templated {
  readonly template: ChatTemplate | null;
  /** A run begins with the template of its parent, which was tried there. */
  readonly isInherited: boolean;
  readonly baseModel: string;
  /** As the command registers it. */
  readonly models: Readonly<Record<string, string>>;
}

/**
 * Refuses a template that fails with this model, or a model without one, and tells what it leaves out. A GPU worker
 * elsewhere does it when the run begins: the model may be there alone.
 */
export async function proveChatTemplate(
  { template, isInherited, baseModel, models }: Templated,
  { project, env, output, signal }: Surroundings,
): Promise<void> {
  const isBuiltIn = (BUILT_IN_MODELS as readonly string[]).includes(baseModel);
  if (template === null && (isBuiltIn || isInherited)) return;
  const config = await loadConfig(project, env);
  const source = { ...knownModels(project, config), ...models }[baseModel] ?? null;
  if (config.engine.url !== null || (source === null && !isBuiltIn)) return;
  const file = template === null ? null : template.file;
  const onEvent = createEventPrinter((line) => output.errorLine(line));
  const gaps = await checkChatTemplate({ baseModel, source, file }, { env, cache: cacheFolder(env), signal, onEvent });
  for (const gap of gaps) output.errorLine(`note: of the chat template ${file ?? `of ${baseModel}`}: ${gap}`);
}
