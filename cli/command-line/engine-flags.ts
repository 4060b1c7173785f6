/** `--device` and `--dtype`: what the local stack's GPU worker computes on, and with which numbers. */
import { DEVICE, DTYPES } from '../../workers/config.ts';
import type { Dtype } from '../../workers/config.ts';
import type { CommandOptions, Flags } from './command.ts';
import { stringFlag } from './command.ts';
import { UsageError } from './errors.ts';

export const ENGINE_OPTIONS: CommandOptions = {
  device: {
    type: 'string',
    placeholder: 'NAME',
    description: 'where the local stack computes: auto, cpu, cuda or cuda:N ["auto": a GPU if there is one]',
  },
  dtype: {
    type: 'string',
    placeholder: 'NAME',
    description: 'type of the base model: auto, float32 or bfloat16 ["auto": bfloat16 on a GPU, else float32]',
  },
};

/** Null where a flag was not given: as `temporal.config.ts` has it. */
export interface EngineFlags {
  readonly device: string | null;
  readonly dtype: Dtype | null;
}

export function engineFlags(flags: Flags): EngineFlags {
  const [device, dtype] = [stringFlag(flags, 'device'), stringFlag(flags, 'dtype')];
  if (device !== null && !DEVICE.test(device))
    throw new UsageError(
      `--device must be auto, cpu, cuda or cuda:N, got ${JSON.stringify(device)}; pass --device cpu`,
    );
  if (dtype !== null && !isDtype(dtype))
    throw new UsageError(
      `--dtype must be one of ${DTYPES.join(', ')}, got ${JSON.stringify(dtype)}; pass --dtype auto`,
    );
  return { device, dtype };
}

function isDtype(text: string): text is Dtype {
  return (DTYPES as readonly string[]).includes(text);
}
