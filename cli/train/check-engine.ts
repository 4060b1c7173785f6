/** What the engine and the trainer of this project could not compute: refused before anything is started. */
import type { RunConfig } from '../../core/contract.ts';
import { loadConfig } from '../../workers/config.ts';
import type { Surroundings } from '../command-line/command.ts';
import type { EngineFlags } from '../command-line/engine-flags.ts';
import { UsageError } from '../command-line/errors.ts';

type Asked = Pick<EngineFlags, 'engine' | 'shard-base-model'>;

/** `flags`: null for a command that starts no engine. */
export async function checkEngine(
  { train: { lora } }: RunConfig,
  flags: Asked | null,
  { project, env }: Pick<Surroundings, 'project' | 'env'>,
): Promise<void> {
  const { kind, shardBaseModel } = (await loadConfig(project, env)).engine;
  if (lora === null && (flags?.['shard-base-model'] || shardBaseModel))
    throw new UsageError(
      '--full-fine-tuning needs the whole base model on each device: only frozen weights can be sharded; leave --shard-base-model (engine.shardBaseModel) or --full-fine-tuning out',
    );
  if ((flags?.engine ?? kind) !== 'vllm') return;
  if (lora === null)
    throw new UsageError(
      '--full-fine-tuning needs the embedded engine: vLLM takes only adapters per request; pass --engine embedded, or leave --full-fine-tuning out',
    );
  if (lora.dora !== true) return;
  throw new UsageError(
    '--lora-dora needs the embedded engine: vLLM loads no adapters with magnitudes (DoRA); pass --engine embedded, or leave --lora-dora out',
  );
}
