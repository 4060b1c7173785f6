/**
 * Which commit a model of the Hugging Face hub is. A run records it as OWNER/NAME@COMMIT and keeps it, whatever becomes
 * of the branch; the files are on this machine before anything is started.
 */
import { z } from 'zod';
import { HUB_PREFIX } from '../../core/wire-constants.ts';
import { TemperError } from '../../core/failures.ts';
import { hubModelOf, type BaseModel, type HubModel } from '../base-model.ts';
import type { TemperConfig } from '../config.ts';
import { withProgress, type InstallOptions, type Progress } from '../install/install.ts';
import { runPythonProgram } from './run-program.ts';

export interface PinOptions extends InstallOptions {
  readonly config: TemperConfig;
}

const ProgressSchema = z.object({ done: z.number(), total: z.number() });
const AnswerSchema = z.object({ commit: z.string().regex(/^[0-9a-f]{40}$/) });

/** `recorded`: what a run that exists names its base model; null for a new one. */
export async function pinBaseModel(model: BaseModel, recorded: string | null, options: PinOptions): Promise<BaseModel> {
  const asked = hubModelOf(model);
  if (asked === null) return model;
  const { repository, revision } = asked;
  const isKept = recorded === model.name || recorded?.startsWith(`${repository}@`) === true;
  if (isKept && (revision === null || recorded.endsWith(`@${revision}`)))
    return recorded === model.name ? model : registered(recorded);
  // The GPU worker that loads it is elsewhere, and so are the hub's token and cache.
  if (options.config.engine.url !== null) return model;
  return registered(`${repository}@${await fetchModel(asked, options)}`);
}

function registered(name: string): BaseModel {
  return { name, models: { [name]: `${HUB_PREFIX}${name}` } };
}

async function fetchModel({ repository, revision }: HubModel, options: InstallOptions): Promise<string> {
  const name = revision === null ? repository : `${repository}@${revision}`;
  let commit: string | null = null;
  await withProgress('model', options.onEvent, `the model ${name} is on this machine`, async (progress) => {
    progress.tell(`looking for the model ${name}`);
    const { answer, lastLine } = await runPythonProgram({
      ...options,
      name: 'fetch_model',
      args: ['--model', name],
      onLine: (line) => tellProgress(line, name, progress),
    });
    const found = AnswerSchema.safeParse(answer);
    if (!found.success)
      throw new TemperError(
        'EngineFailed',
        `the model ${name} could not be downloaded: ${lastLine}; run temper doctor`,
      );
    ({ commit } = found.data);
  });
  return commit!;
}

function tellProgress(line: string, name: string, progress: Progress): void {
  if (!line.startsWith('{')) return;
  const told = ProgressSchema.safeParse(JSON.parse(line));
  if (told.success) progress.tell(`downloading the model ${name}`, { ...told.data, unit: 'bytes' });
}
