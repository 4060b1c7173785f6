/** `--engine`, `--device`, `--dtype`, `--load-in-4bit`, `--devices` and `--shard-base-model`: what samples, and what the local stack's GPU worker computes on; null or false: as `temporal.config.ts` has it. */
import type { Flags, FlagValues } from '../../operations/flags.ts';
import { DEVICE_PATTERN, DEVICE_RULE, DTYPES, ENGINES, MOST_DEVICES } from '../../core/contract/wire-constants.ts';
import type { EngineOverrides } from '../../core/rules/engine-rules.ts';

const heading = 'Engine and devices';

export const ENGINE_FLAGS = {
  engine: {
    heading,
    isMain: true,
    kind: 'choice',
    choices: ENGINES,
    placeholder: 'NAME',
    description: 'what samples: embedded or vllm',
    default: 'vllm on a GPU with vLLM installed, else embedded',
  },
  device: {
    heading,
    isMain: true,
    kind: 'text',
    form: { pattern: DEVICE_PATTERN, rule: DEVICE_RULE, example: 'cpu' },
    placeholder: 'NAME',
    description: 'where the local stack computes: auto, cpu, cuda or cuda:N',
    default: 'auto: a GPU if there is one',
  },
  dtype: {
    heading,
    kind: 'choice',
    choices: DTYPES,
    placeholder: 'NAME',
    description: 'type of the base model: auto, float32 or bfloat16',
    default: 'auto: bfloat16 on a GPU, else float32',
  },
  'load-in-4bit': {
    heading,
    kind: 'boolean',
    description: 'load the linear layers of the base model in 4 bits per weight (NF4); not with vLLM',
  },
  devices: {
    heading,
    kind: 'integer',
    minimum: 1,
    maximum: MOST_DEVICES,
    placeholder: 'N',
    description: 'how many devices train: GPUs, or processes on the CPU',
    default: '1',
  },
  'shard-base-model': {
    heading,
    kind: 'boolean',
    description: 'each of several --devices holds a part of the base model, which need not fit into one of them',
  },
} satisfies Flags;

export type EngineFlags = FlagValues<typeof ENGINE_FLAGS>;

export function engineOverrides(flags: Omit<EngineFlags, 'engine'> & Partial<EngineFlags>): EngineOverrides {
  const { engine = null, device, dtype, devices } = flags;
  const { 'shard-base-model': shardBaseModel, 'load-in-4bit': loadIn4bit } = flags;
  return { kind: engine, device, dtype, devices, shardBaseModel, loadIn4bit };
}
