/** Merged weights, made by the GPU worker's Python: `temper_gpu.process.export`. */
import { z } from 'zod';
import { FAILURES, TemperError, type FailureType } from '../../core/failures.ts';
import type { TrainedPolicy } from '../../store/records/find-policy.ts';
import type { Store } from '../../store/store.ts';
import { runCommand } from '../../workers/command.ts';
import { loadConfig } from '../../workers/config.ts';
import { cacheFolder, GPU_WORKER_FOLDER } from '../../workers/folders.ts';
import { openPythonEnvironment } from '../../workers/install/python-environment.ts';
import { gpuWorkerEnvironment } from '../../workers/local-stack/child-environment.ts';
import { writeKnownModels } from '../../workers/local-stack/known-models.ts';
import { WorkFailed } from '../command-line/errors.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { ExportContext } from './command.ts';

const MergedSchema = z.object({
  /** Of a base model from a hub. */
  revision: z.string().nullable(),
  /** How much of what the adapter changes is left after rounding; null: it changes nothing. */
  kept: z.number().nullable(),
});
export type Merged = z.infer<typeof MergedSchema> & { readonly dtype: string };

export async function mergePolicy(
  folder: string,
  store: Store,
  { name }: TrainedPolicy,
  { flags, project, env, output, signal }: ExportContext,
): Promise<Merged> {
  const dtype = flags.dtype ?? 'float32';
  const onEvent = createEventPrinter((line) => output.errorLine(line));
  const { python } = await openPythonEnvironment({ env, cache: cacheFolder(env), signal, onEvent });
  const models = writeKnownModels(project, await loadConfig(project, env));
  const place = ['--store', store.uri, '--policy', name, '--models', models, '--to', folder, '--dtype', dtype];
  const { code, output: said } = await runCommand(python, ['-m', 'temper_gpu.process.export', ...place], {
    cwd: GPU_WORKER_FOLDER,
    env: gpuWorkerEnvironment(env),
    signal,
  });
  signal.throwIfAborted();
  const lines = said.split('\n');
  const answer = lines.find((line) => line.startsWith('{'));
  if (code === 0 && answer !== undefined) return { ...MergedSchema.parse(JSON.parse(answer)), dtype };
  throw toFailure(name, lines);
}

/** `BadConfig: …` is what Python says of a failure that it knows. */
function toFailure(policy: string, lines: readonly string[]): Error {
  for (const line of lines) {
    const [, type = '', message = ''] = /^([A-Za-z]+): (.+)$/.exec(line) ?? [];
    if (Object.hasOwn(FAILURES, type)) return new TemperError(type as FailureType, message);
  }
  return new WorkFailed(
    `${policy} could not be merged: ${lines.findLast((line) => line !== '') ?? 'no answer'}; run temper doctor, or export the adapter alone with --format peft`,
  );
}
