/** `--chat-template FILE`: a Jinja template instead of the model's own. Its text goes into the store under its hash. */
import { resolve } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import { MAX_CHAT_TEMPLATE_BYTES } from '../../core/contract/wire-constants.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { checkChatTemplate } from '../../workers/python/check-inputs.ts';
import type { Output } from '../terminal/output.ts';
import { programContext } from '../terminal/stack-events.ts';
import { isBuiltIn } from '../../workers/base-models/base-model.ts';
import { findLocalModel } from './base-model.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { readWhole, textIn } from '../command-line/files.ts';

export interface ChatTemplate {
  readonly file: string;
  readonly bytes: Uint8Array;
  readonly sha256: string;
}

/** Null if none was given. */
export async function readChatTemplate(text: string | null, cwd: string): Promise<ChatTemplate | null> {
  if (text === null) return null;
  const file = resolve(cwd, text);
  const bytes = await readWhole('--chat-template', file, MAX_CHAT_TEMPLATE_BYTES);
  if (textIn('--chat-template', file, bytes).trim() === '')
    throw badConfig(`--chat-template must be a Jinja template, ${file} is blank; pass another file`);
  return { file, bytes, sha256: hashBytes(bytes) };
}

interface Templated {
  readonly template: ChatTemplate | null;
  /** The template comes from the parent, where it was checked. */
  readonly isInherited: boolean;
  readonly baseModel: string;
  /** Base models that the command registers, by name. */
  readonly models: Readonly<Record<string, string>>;
}

/**
 * Refuses a template that fails with this model, or a model without one, and prints what a given one leaves out.
 * Returns whether it writes the current date. A remote GPU worker checks it when the run begins: the model may only be
 * there.
 */
export async function proveChatTemplate(
  { template, isInherited, baseModel, models }: Templated,
  environment: CommandEnvironment,
): Promise<boolean> {
  if (template === null && (isBuiltIn(baseModel) || isInherited)) return false;
  const local = await findLocalModel(baseModel, models, environment);
  if (local === null) return false;
  const file = template?.file ?? null;
  const tried = { model: baseModel, ...local, chatTemplate: file };
  const { gaps, readsClock } = await checkChatTemplate(tried, programContext(environment));
  // Requests that a template cannot write are refused by name; a model's own gaps are shown by temper doctor model.
  if (file !== null) for (const gap of gaps) environment.output.errorLine(`note: the chat template ${file}: ${gap}`);
  return readsClock;
}

/** Template function for the date; a fixed value makes it constant. */
const CLOCK = 'strftime_now';

/** Fixes the date that a template writes, because a run may last past midnight and be verified years later. */
export function keepDate(config: RunConfig, output: Output): RunConfig {
  if (config.rollout.chatTemplateKwargs?.[CLOCK] !== undefined) return config;
  const now = new Date();
  const day = new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
  output.errorLine(`note: the chat template writes the date, which is ${day} in all of the run`);
  return withDate(config, day);
}

/** Takes the date of an existing run, so that a repeated command agrees with it. */
export function keepRecordedDate(config: RunConfig, recorded: RunConfig | null): RunConfig {
  const day = recorded?.rollout.chatTemplateKwargs?.[CLOCK];
  const isAsked = config.rollout.chatTemplateKwargs?.[CLOCK] !== undefined;
  return day === undefined || isAsked ? config : withDate(config, day);
}

function withDate(config: RunConfig, day: string | number | boolean): RunConfig {
  const chatTemplateKwargs = { ...config.rollout.chatTemplateKwargs, [CLOCK]: day };
  return { ...config, rollout: { ...config.rollout, chatTemplateKwargs } };
}
