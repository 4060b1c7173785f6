/** How a base model is loaded: the type of its weights, and whether its linear layers are in 4 bits. A checkpoint is used with the base model that it was trained on. */
import type { EngineSettings } from '../../core/contract/engine.ts';

/** `platform.quantization` in manifests of policies that were trained beside packed weights. */
const NF4 = 'nf4';

export interface Trained {
  readonly platform: Readonly<Record<string, unknown>>;
}

export interface TrainedBase {
  readonly dtype: 'float32' | 'bfloat16';
  readonly loadIn4bit: boolean;
}

export interface LoadedBase extends Pick<TrainedBase, 'loadIn4bit'> {
  /** Null if PyTorch decides at its start: it may not see the host's GPUs. */
  readonly dtype: TrainedBase['dtype'] | null;
}

/** The type is float32 if a manifest names none. */
export function trainedBase({ platform }: Trained): TrainedBase {
  return {
    dtype: platform['dtype'] === 'bfloat16' ? 'bfloat16' : 'float32',
    loadIn4bit: platform['quantization'] === NF4,
  };
}

/** Base model as a GPU worker of this host loads it. */
export function loadedBase(
  { device, dtype, loadIn4bit }: Pick<EngineSettings, 'device' | 'dtype' | 'loadIn4bit'>,
  hasGpus: boolean,
): LoadedBase {
  if (dtype !== 'auto') return { dtype, loadIn4bit };
  if (device === 'auto') return { dtype: hasGpus ? null : 'float32', loadIn4bit };
  return { dtype: device === 'cpu' ? 'float32' : 'bfloat16', loadIn4bit };
}

/** Unknown properties count as equal: the GPU worker checks them. */
export function isSameBase(trained: TrainedBase, loaded: LoadedBase): boolean {
  const isSameDtype = loaded.dtype === null || trained.dtype === loaded.dtype;
  return isSameDtype && trained.loadIn4bit === loaded.loadIn4bit;
}

export function describeBase({ dtype, loadIn4bit }: LoadedBase): string {
  return `${dtype ?? 'float32 or bfloat16'}${loadIn4bit ? ' with 4 bits per weight' : ''}`;
}
