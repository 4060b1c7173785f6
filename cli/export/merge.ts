/** Merges weights with the GPU worker's Python: `temper_gpu.process.export`. */
import { z } from 'zod';
import type { TrainedPolicy } from '../../store/records/find-policy.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { writeKnownModels } from '../../workers/base-models/known-models.ts';
import { runPythonProgram } from '../../workers/python/run-program.ts';
import { WorkFailed } from '../command-line/errors.ts';
import { programContext } from '../terminal/stack-events.ts';
import type { ExportContext } from './command.ts';

const MergedSchema = z.object({
  /** Revision of a base model from a hub. */
  revision: z.string().nullable(),
  /** Share of the adapter's change that is left after rounding; null if it changes nothing. */
  kept: z.number().nullable(),
});
export type Merged = z.infer<typeof MergedSchema> & { readonly dtype: string };

export async function mergePolicy(
  folder: string,
  store: Store,
  { name, config }: TrainedPolicy,
  context: ExportContext,
): Promise<Merged> {
  const { flags, project, env } = context;
  const dtype = flags.dtype ?? 'float32';
  const models = writeKnownModels(project, await loadConfig(project, env));
  const { chatTemplateSha256: template } = config.rollout;
  const place = { store: store.uri, policy: name, models, to: folder, dtype };
  const { answer, lastLine } = await runPythonProgram({
    name: 'export',
    flags: { ...place, 'chat-template-sha256': template },
    ...programContext(context),
  });
  if (answer !== null) return { ...MergedSchema.parse(answer), dtype };
  const [verb, other] =
    config.train.lora === null ? ['written', ''] : ['merged', ', or export the adapter alone with --format peft'];
  throw new WorkFailed(`${name} could not be ${verb}: ${lastLine}; run temper doctor${other}`);
}
