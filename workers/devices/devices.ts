/** How many devices this host has, to train on. */
import { availableParallelism } from 'node:os';
import type { EngineSettings } from '../../core/contract/engine.ts';
import { checkSharding } from '../../core/rules/engine-rules.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { findGpus } from './nvidia-smi.ts';

export type AskedDevices = Pick<EngineSettings, 'device' | 'devices' | 'shardBaseModel' | 'kind'>;

export interface FoundDevices {
  /** Names of the host's GPUs. */
  readonly gpus: readonly string[];
  readonly cores: number;
  /** That may train: GPUs from the first one on, or the CPU's cores. */
  readonly count: number;
  readonly where: string;
}

/** Asks NVIDIA's driver, unless the caller knows the `names` of GPUs. */
export async function findDevices(
  { device }: Pick<AskedDevices, 'device'>,
  env: NodeJS.ProcessEnv,
  names?: readonly string[],
): Promise<FoundDevices> {
  const [gpus, cores] = [names ?? (await findGpus(env)), availableParallelism()];
  if (device === 'cpu' || (device === 'auto' && gpus.length === 0))
    return { gpus, cores, count: cores, where: 'CPU cores' };
  const first = Number(/^cuda:(\d+)$/.exec(device)?.[1] ?? 0);
  return { gpus, cores, count: Math.max(0, gpus.length - first), where: `GPUs from cuda:${first} on` };
}

/** Before anything is installed or started; the GPU worker asks PyTorch, too. */
export async function requireDevices(
  asked: AskedDevices,
  env: NodeJS.ProcessEnv,
  names?: readonly string[],
): Promise<void> {
  checkSharding(asked);
  if (asked.devices === 1) return;
  if (process.platform !== 'linux') throw tooMany(asked, `1 on ${process.platform}`, 1);
  const { gpus, count, where } = await findDevices(asked, env, names);
  if (asked.devices > count) throw tooMany(asked, `${count}, the number of ${where} of this host`, count);
  checkSharding(asked, gpus.length > 0);
}

function tooMany({ devices }: AskedDevices, most: string, count: number): TemperError {
  return badConfig(
    `--devices (engine.devices in temporal.config.ts) must be at most ${most}, got ${devices}; pass --devices ${Math.max(1, count)}`,
  );
}
