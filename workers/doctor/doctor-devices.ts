/** How many devices could train here, and how many are to. */
import { availableParallelism } from 'node:os';
import { runCommand } from '../command.ts';
import type { EngineConfig } from '../config.ts';

const WITHIN_MS = 10_000;

/** Throws where the GPU worker would refuse to start. Asks NVIDIA's driver, not PyTorch, which takes seconds to load. */
export async function devicesState(engine: Pick<EngineConfig, 'device' | 'devices'>, env: NodeJS.ProcessEnv) {
  const gpus = await findGpus(env);
  const onGpus = engine.device.startsWith('cuda') || (engine.device === 'auto' && gpus.length > 0);
  const first = Number(/^cuda:(\d+)$/.exec(engine.device)?.[1] ?? 0);
  const found = onGpus ? Math.max(0, gpus.length - first) : availableParallelism();
  const here = `${gpus.length} ${gpus.length === 1 ? 'GPU' : 'GPUs'}${names(gpus)}, ${availableParallelism()} CPU cores`;
  const where = onGpus ? `cuda:${first}` : 'the CPU';
  if (engine.devices <= found) return `${here}; ${engine.devices} on ${where} (engine.devices)`;
  throw new Error(
    `${here}, but engine.devices is ${engine.devices} on ${where}; set it to at most ${Math.max(1, found)} in temporal.config.ts, or change engine.device`,
  );
}

async function findGpus(env: NodeJS.ProcessEnv): Promise<string[]> {
  const query = ['--query-gpu=name', '--format=csv,noheader'];
  const { code, output } = await runCommand('nvidia-smi', query, { env, timeoutMs: WITHIN_MS });
  const gpus = code === 0 ? output.split('\n').filter((line) => line.trim() !== '') : [];
  const visible = env['CUDA_VISIBLE_DEVICES'];
  return visible === undefined ? gpus : gpus.slice(0, visible.split(',').filter(Boolean).length);
}

function names(gpus: readonly string[]): string {
  return gpus.length === 0 ? '' : ` (${[...new Set(gpus)].join(', ')})`;
}
