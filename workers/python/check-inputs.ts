/** Whether a chat template, or a dataset, suits a base model: Python tries them with the model's tokenizer. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { ProgramInputs } from '../../core/contract/programs.ts';
import type { InstallOptions } from '../install/install.ts';
import { askPython } from './run-program.ts';

const TemplateSchema = z.object({
  /** Descriptions of the features that it lacks. */
  gaps: z.array(z.string()),
  /** It writes the day's date. */
  readsClock: z.boolean(),
});

/** Throws BadConfig for one that fails. */
export function checkChatTemplate(
  input: ProgramInputs['check_template'],
  options: InstallOptions,
): Promise<z.infer<typeof TemplateSchema>> {
  const failure = `the chat template of ${input.model} could not be checked`;
  return askPython(TemplateSchema, failure, { ...options, name: 'check_template', input });
}

const ExamplesSchema = z.object({
  examples: z.number(),
  overlong: z.number(),
  tokens: z.number(),
  trainedTokens: z.number(),
  longest: z.number(),
});
export type ExampleFacts = z.infer<typeof ExamplesSchema>;

/** Throws BadConfig for an example that cannot be written, by its line. `bytes`: for the store. */
export async function checkExamples(
  tried: Omit<ProgramInputs['check_examples'], 'dataset'>,
  bytes: Uint8Array,
  options: InstallOptions,
): Promise<ExampleFacts> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-examples-'));
  try {
    const dataset = join(folder, 'examples.jsonl');
    await writeFile(dataset, bytes);
    const program = { ...options, name: 'check_examples', input: { ...tried, dataset } } as const;
    return await askPython(ExamplesSchema, 'the examples could not be checked', program);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
