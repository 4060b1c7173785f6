/** Decoder layers that PyTorch compiles for training (`engine.compileLayers`): what they cannot go with. */
import { TemperError } from '../../core/failures.ts';

interface Asked {
  readonly compileLayers: boolean;
  readonly device: string;
  readonly loadIn4bit: boolean;
  readonly shardBaseModel: boolean;
}

/** Refused before anything is started. Where `auto` finds no GPU, the GPU worker says so. */
export function checkCompiledLayers({ compileLayers, device, loadIn4bit, shardBaseModel }: Asked): void {
  if (!compileLayers) return;
  if (device === 'cpu')
    throw uncompilable('a GPU (on a CPU nothing gets faster)', '--device cpu (engine.device)', 'pass --device cuda');
  if (loadIn4bit)
    throw uncompilable(
      'whole weights (those in 4 bits are not compiled)',
      '--load-in-4bit (engine.loadIn4bit)',
      'leave that out',
    );
  if (shardBaseModel)
    throw uncompilable(
      'a whole base model on each device (parts of it are not compiled)',
      '--shard-base-model (engine.shardBaseModel)',
      'leave that out',
    );
}

function uncompilable(rule: string, got: string, remedy: string): TemperError {
  return new TemperError(
    'BadConfig',
    `engine.compileLayers in temporal.config.ts must come with ${rule}, got ${got}; ${remedy}, or remove it`,
  );
}
