/** Whether a chat template suits a base model: Python tries it with the model's tokenizer, before anything is started. */
import { z } from 'zod';
import type { InstallOptions } from '../install/install.ts';
import { askPython } from './run-program.ts';

interface TriedTemplate {
  readonly baseModel: string;
  /** A folder or a `hub:` name; null: a built-in model. */
  readonly source: string | null;
  /** Null: the model's own is tried. */
  readonly file: string | null;
}

const AnswerSchema = z.object({
  /** Descriptions of the features that it lacks. */
  gaps: z.array(z.string()),
  /** It writes the day's date. */
  readsClock: z.boolean(),
});
export type TemplateFacts = z.infer<typeof AnswerSchema>;

/** Throws BadConfig for one that fails. */
export function checkChatTemplate(
  { baseModel, source, file }: TriedTemplate,
  options: InstallOptions,
): Promise<TemplateFacts> {
  const flags = { model: baseModel, source, 'chat-template': file };
  const failure = `the chat template of ${baseModel} could not be checked`;
  return askPython(AnswerSchema, failure, { ...options, name: 'check_template', flags });
}
