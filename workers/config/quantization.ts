/** Base models in 4 bits (`--load-in-4bit`): what they cannot go with, and which checkpoints were trained on one. */
import { TemperError } from '../../core/failures.ts';
import type { EngineKind } from './engine-choices.ts';

/** What manifests say of a policy that was trained beside packed weights: `platform.quantization`. */
const NF4 = 'nf4';

interface Asked {
  readonly loadIn4bit: boolean;
  readonly kind: EngineKind;
  readonly shardBaseModel: boolean;
}

/** Refused before anything is started. */
export function checkQuantization({ loadIn4bit, kind, shardBaseModel }: Asked): void {
  if (!loadIn4bit) return;
  if (kind === 'vllm')
    throw unquantizable(
      'the embedded engine, because vLLM reads the weights of the model itself, got vllm; choose the embedded engine (--engine, engine.kind)',
    );
  if (shardBaseModel)
    throw unquantizable(
      'a whole base model on each device, because weights in 4 bits cannot be sharded, got --shard-base-model; leave that out (engine.shardBaseModel)',
    );
}

/** A run that trains all weights needs them whole. */
export function refuseQuantizedTraining({ loadIn4bit }: Pick<Asked, 'loadIn4bit'>): void {
  if (loadIn4bit)
    throw unquantizable(
      'a LoRA adapter to train, because weights in 4 bits are frozen, got --full-fine-tuning; leave that out',
    );
}

export interface Trained {
  readonly platform: Readonly<Record<string, unknown>>;
}

export function isQuantized({ platform }: Trained): boolean {
  return platform['quantization'] === NF4;
}

/** The type of numbers of a manifest's base model; float32 where it names none. */
export function trainedDtype({ platform }: Trained): 'float32' | 'bfloat16' {
  return platform['dtype'] === 'bfloat16' ? 'bfloat16' : 'float32';
}

function unquantizable(rule: string): TemperError {
  return new TemperError(
    'BadConfig',
    `--load-in-4bit (engine.loadIn4bit in temporal.config.ts) must come with ${rule}, or leave --load-in-4bit out`,
  );
}
