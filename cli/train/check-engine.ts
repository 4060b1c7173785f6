/** What the engine and the trainer of this project could not compute: refused before anything is started. */
import type { RunConfig } from '../../core/contract.ts';
import { loadConfig, type EngineConfig } from '../../workers/config.ts';
import { checkQuantization, refuseQuantizedTraining } from '../../workers/quantization.ts';
import type { Surroundings } from '../command-line/command.ts';
import type { EngineFlags } from '../command-line/engine-flags.ts';
import { UsageError } from '../command-line/errors.ts';

type Asked = Pick<EngineFlags, 'engine' | 'shard-base-model' | 'load-in-4bit'>;

/** `flags`: null for a command that starts no engine. */
export async function checkEngine(
  { train: { lora } }: RunConfig,
  flags: Asked | null,
  { project, env }: Pick<Surroundings, 'project' | 'env'>,
): Promise<void> {
  const engine = asEngine((await loadConfig(project, env)).engine, flags);
  if (lora === null) refuseQuantizedTraining(engine);
  checkQuantization(engine);
  if (lora === null && engine.shardBaseModel)
    throw new UsageError(
      '--full-fine-tuning needs the whole base model on each device: only frozen weights can be sharded; leave --shard-base-model (engine.shardBaseModel) or --full-fine-tuning out',
    );
  if (engine.kind !== 'vllm') return;
  if (lora === null)
    throw new UsageError(
      '--full-fine-tuning needs the embedded engine: vLLM takes only adapters per request; pass --engine embedded, or leave --full-fine-tuning out',
    );
  if (lora.dora !== true) return;
  throw new UsageError(
    '--lora-dora needs the embedded engine: vLLM loads no adapters with magnitudes (DoRA); pass --engine embedded, or leave --lora-dora out',
  );
}

/** As the GPU worker of the local stack would be told. */
function asEngine(
  configured: EngineConfig,
  flags: Asked | null,
): Pick<EngineConfig, 'kind' | 'shardBaseModel' | 'loadIn4bit'> {
  return {
    kind: flags?.engine ?? configured.kind,
    shardBaseModel: flags?.['shard-base-model'] === true || configured.shardBaseModel,
    loadIn4bit: flags?.['load-in-4bit'] === true || configured.loadIn4bit,
  };
}
