/** What the engine and the trainer of this project could not compute: refused before anything is started. */
import type { RunConfig } from '../../core/contract.ts';
import { checkCompiledLayers } from '../../workers/compiled-layers.ts';
import { loadConfig, type ChosenEngine } from '../../workers/config.ts';
import { findDevices } from '../../workers/devices.ts';
import { chosenEngine, type EngineKind } from '../../workers/engine-choices.ts';
import { loadedBase, type LoadedBase } from '../../workers/loaded-base.ts';
import { checkQuantization, refuseQuantizedTraining } from '../../workers/quantization.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { askedEngine, type EngineFlags } from '../command-line/engine-flags.ts';
import { UsageError } from '../command-line/errors.ts';

type Place = Pick<CommandEnvironment, 'project' | 'env'>;

/** `flags`: null for a command that starts no engine. */
export async function checkEngine(
  { train: { lora } }: RunConfig,
  flags: EngineFlags | null,
  place: Place,
): Promise<void> {
  const engine = await engineOf(flags, place);
  if (lora === null) refuseQuantizedTraining(engine);
  checkQuantization(engine);
  checkCompiledLayers(engine);
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

/**
 * A run that is `recorded` goes on as it is. Corrections compare the sampler with the trainer before its first update, and
 * in float32 the embedded engine computes what the trainer does. `usual`: what samples unless flags or the configuration
 * say so.
 */
export async function refuseIdleCorrection(
  { train: { correction }, maxStaleness = 0 }: RunConfig,
  recorded: RunConfig | null,
  flags: EngineFlags | null,
  place: Place,
  usual: EngineKind = 'embedded',
): Promise<void> {
  if (recorded !== null || correction === undefined || maxStaleness > 0) return;
  const { kind } = await engineOf(flags, place, usual);
  if (kind !== 'embedded' || (await findLoadedBase(flags, place))?.dtype !== 'float32') return;
  throw new UsageError(
    `--correction ${correction} has no effect with the embedded engine in float32 and --max-staleness 0: sampler and trainer agree up to rounding; pass --correction none, or leave it out`,
  );
}

/** Null where an engine elsewhere decides. */
export async function findLoadedBase(flags: EngineFlags | null, place: Place): Promise<LoadedBase | null> {
  const engine = await engineOf(flags, place);
  if (engine.url !== null) return null;
  // GPU workers that this command does not start may have GPUs.
  const hasGpus = flags === null || (await findDevices(engine, place.env)).gpus.length > 0;
  return loadedBase(engine, hasGpus);
}

async function engineOf(flags: EngineFlags | null, { project, env }: Place, usual?: EngineKind): Promise<ChosenEngine> {
  return chosenEngine((await loadConfig(project, env)).engine, flags === null ? {} : askedEngine(flags), usual);
}
