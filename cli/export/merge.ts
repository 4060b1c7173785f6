/** Files that Python makes of a policy: merged weights, and the formats of other programs. */
import type { TrainedPolicy } from '../../store/records/find-policy.ts';
import type { Store } from '../../store/store.ts';
import { writeKnownModels } from '../../workers/base-models/known-models.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { exportByPython, type Exported, type PolicyExport } from '../../workers/python/export-policy.ts';
import { WorkFailed } from '../command-line/errors.ts';
import { programContext } from '../terminal/stack-events.ts';
import type { ExportContext } from './command.ts';

export type Converted = Exported & {
  /** Type of the weights, `q8_0` among them. */
  readonly dtype: string;
};

export async function convertPolicy(
  folder: string,
  format: PolicyExport['format'],
  store: Store,
  { name, config }: TrainedPolicy,
  context: ExportContext,
): Promise<Converted> {
  const { flags, project, env } = context;
  const dtype = flags.dtype ?? 'float32';
  const models = writeKnownModels(project, await loadConfig(project, env));
  const { exported, lastLine } = await exportByPython({
    storeUri: store.uri,
    models,
    policy: name,
    folder,
    format,
    dtype,
    quantize: flags.quantize,
    chatTemplateSha256: config.rollout.chatTemplateSha256,
    ...programContext(context),
  });
  if (exported !== null) return { ...exported, dtype: flags.quantize ?? dtype };
  const verb = format === 'mlx' || config.train.lora === null ? 'written' : 'merged';
  const other = config.train.lora === null ? '' : ', or export the adapter alone with --format peft';
  throw new WorkFailed(`${name} could not be ${verb}: ${lastLine}; run temper doctor${other}`);
}
