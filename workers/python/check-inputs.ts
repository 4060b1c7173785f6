/** Whether a chat template or a dataset suits a base model: Python tries it with the model's tokenizer, before anything is started. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { ExampleRendering } from '../../core/contract/contract.ts';
import type { InstallOptions } from '../install/install.ts';
import { askPython } from './run-program.ts';

interface TriedTemplate {
  readonly baseModel: string;
  /** A folder or a `hub:` name; null: a built-in model. */
  readonly source: string | null;
  /** Null: the model's own template. */
  readonly templateFile: string | null;
}

const TemplateSchema = z.object({
  /** Descriptions of the features that it lacks. */
  gaps: z.array(z.string()),
  /** It writes the day's date. */
  readsClock: z.boolean(),
});
export type TemplateFacts = z.infer<typeof TemplateSchema>;

/** Throws BadConfig for one that fails. */
export function checkChatTemplate(
  { baseModel, source, templateFile }: TriedTemplate,
  options: InstallOptions,
): Promise<TemplateFacts> {
  const flags = { model: baseModel, source, 'chat-template': templateFile };
  const failure = `the chat template of ${baseModel} could not be checked`;
  return askPython(TemplateSchema, failure, { ...options, name: 'check_template', flags });
}

interface TriedExamples extends TriedTemplate {
  readonly rendering: ExampleRendering;
  /** Bytes for the store. */
  readonly bytes: Uint8Array;
}

const ExamplesSchema = z.object({
  examples: z.number(),
  overlong: z.number(),
  tokens: z.number(),
  trainedTokens: z.number(),
  longest: z.number(),
});
export type ExampleFacts = z.infer<typeof ExamplesSchema>;

/** Throws BadConfig for an example that cannot be written, by its line. */
export async function checkExamples(tried: TriedExamples, options: InstallOptions): Promise<ExampleFacts> {
  const { baseModel, source, templateFile, rendering, bytes } = tried;
  const folder = await mkdtemp(join(tmpdir(), 'temper-examples-'));
  try {
    const dataset = join(folder, 'examples.jsonl');
    await writeFile(dataset, bytes);
    const sources = { source, 'chat-template': templateFile };
    const flags = { model: baseModel, dataset, rendering: JSON.stringify(rendering), ...sources };
    const program = { ...options, name: 'check_examples', flags } as const;
    return await askPython(ExamplesSchema, 'the examples could not be checked', program);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
