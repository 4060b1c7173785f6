/** How many devices could train here, and how many are to. */
import { findDevices, requireDevices, type AskedDevices } from '../devices/devices.ts';

/** Throws if the GPU worker would refuse to start. `known`: names of GPUs, if the caller has them. */
export async function devicesState(engine: AskedDevices, env: NodeJS.ProcessEnv, known?: readonly string[]) {
  await requireDevices(engine, env, known);
  const { gpus, cores, where } = await findDevices(engine, env, known);
  const here = `${gpus.length} ${gpus.length === 1 ? 'GPU' : 'GPUs'}${names(gpus)}, ${cores} CPU cores`;
  const parts = engine.shardBaseModel ? ', each with a part of the base model (engine.shardBaseModel)' : '';
  return `${here}; ${engine.devices} of the ${where} (engine.devices)${parts}`;
}

function names(gpus: readonly string[]): string {
  return gpus.length === 0 ? '' : ` (${[...new Set(gpus)].join(', ')})`;
}
