/**
 * Which commit a model of the Hugging Face hub is, or which objects a model in a bucket. A run records OWNER/NAME@COMMIT, or
 * s3/BUCKET/PREFIX@HASH of the listing, and keeps it, whatever is there later; the files are on this machine before anything
 * is started.
 */
import { z } from 'zod';
import { readBoundedText } from '../../core/text/read-bounded.ts';
import { BASE_MODEL_PATTERN } from '../../core/contract/contract.ts';
import { TemperError } from '../../core/contract/failures.ts';
import { remoteModelOf, sourceOfName, type BaseModel, type RemoteModel } from './base-model.ts';
import type { TemperConfig } from '../config/config.ts';
import { withProgress, type InstallOptions, type Progress } from '../install/install.ts';
import { askPython } from '../python/run-program.ts';

export interface PinOptions extends InstallOptions {
  readonly config: TemperConfig;
}

const ProgressSchema = z.object({ done: z.number(), total: z.number() });
/** The hub answers the engine meanwhile. */
const ENGINE_WITHIN_MS = 60_000;
const EngineAnswerSchema = z.object({
  id: z.string().regex(BASE_MODEL_PATTERN).optional(),
  error: z.object({ message: z.string() }).optional(),
});
const AnswerSchema = z.object({ commit: z.string().regex(/^[0-9a-f]{40}$/) });

/** `recorded`: what a run that exists names its base model; null for a new one. */
export async function pinBaseModel(model: BaseModel, recorded: string | null, options: PinOptions): Promise<BaseModel> {
  const asked = remoteModelOf(model);
  if (asked === null) return model;
  const { repository, revision } = asked;
  const isKept = recorded === model.name || recorded?.startsWith(`${repository}@`) === true;
  if (isKept && (revision === null || recorded.endsWith(`@${revision}`)))
    return recorded === model.name ? model : registered(recorded);
  const { url } = options.config.engine;
  if (url === null) return registered(`${repository}@${await fetchModel(asked, options)}`);
  return registered(await askEngine(nameOf(asked), url, options));
}

/** The GPU worker that loads it is elsewhere, and so are the hub's token and cache. */
async function askEngine(name: string, url: string, { config, env, signal }: PinOptions): Promise<string> {
  const { keyVariable } = config.engine;
  const timeout = AbortSignal.timeout(ENGINE_WITHIN_MS);
  const response = await fetch(new URL(`/v1/models/${name}`, url), {
    redirect: 'error',
    headers: { authorization: `Bearer ${env[keyVariable] ?? ''}` },
    signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
  }).catch((cause: unknown) => {
    signal?.throwIfAborted();
    const rule = `the engine at ${url} must say which commit the model ${name} is, but did not answer`;
    throw new TemperError('EngineFailed', `${rule}; start it, or correct its address (temper doctor checks both)`, {
      cause,
    });
  });
  const { data: answer } = EngineAnswerSchema.safeParse(
    await readBoundedText(response)
      .then((text) => JSON.parse(text) as unknown)
      .catch(() => null),
  );
  if (response.ok && answer?.id !== undefined) return answer.id;
  const reason = answer?.error?.message ?? `status ${response.status}`;
  const isConfig = response.status >= 400 && response.status < 500;
  throw new TemperError(
    isConfig ? 'BadConfig' : 'EngineFailed',
    `the engine at ${url} cannot serve the model ${name}: ${reason}`,
  );
}

function registered(name: string): BaseModel {
  return { name, models: { [name]: sourceOfName(name) } };
}

const nameOf = ({ repository, revision }: RemoteModel) =>
  revision === null ? repository : `${repository}@${revision}`;

async function fetchModel(asked: RemoteModel, options: InstallOptions): Promise<string> {
  const name = nameOf(asked);
  let commit: string | null = null;
  await withProgress('model', options.onEvent, `the model ${name} is on this machine`, async (progress) => {
    progress.report(`looking for the model ${name}`);
    const input = { source: sourceOfName(name) };
    const onLine = (line: string) => reportProgress(line, name, progress);
    const program = { ...options, name: 'fetch_model', input, onLine } as const;
    ({ commit } = await askPython(AnswerSchema, `the model ${name} could not be downloaded`, program));
  });
  return commit!;
}

function reportProgress(line: string, name: string, progress: Progress): void {
  if (!line.startsWith('{')) return;
  const update = ProgressSchema.safeParse(JSON.parse(line));
  if (update.success) progress.report(`downloading the model ${name}`, update.data);
}
