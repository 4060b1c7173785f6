/** What the engine and the trainer of this project could not compute: refused before anything is started. */
import type { RunConfig } from '../../core/contract.ts';
import { loadConfig } from '../../workers/config.ts';
import { chosenEngine } from '../../workers/engine-choices.ts';
import { checkQuantization, refuseQuantizedTraining } from '../../workers/quantization.ts';
import type { Surroundings } from '../command-line/command.ts';
import { askedEngine, type EngineFlags } from '../command-line/engine-flags.ts';
import { UsageError } from '../command-line/errors.ts';

/** `flags`: null for a command that starts no engine. */
export async function checkEngine(
  { train: { lora } }: RunConfig,
  flags: EngineFlags | null,
  { project, env }: Pick<Surroundings, 'project' | 'env'>,
): Promise<void> {
  const engine = chosenEngine((await loadConfig(project, env)).engine, flags === null ? {} : askedEngine(flags));
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
