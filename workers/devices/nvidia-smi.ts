/** Asks NVIDIA's own tool about this host's GPUs: PyTorch takes seconds to load. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { runCommand } from '../process/command.ts';

const PROGRAM = 'nvidia-smi';
const WITHIN_MS = 10_000;

/** Null if this host has no such tool. */
export interface SmiAnswer {
  /** Null if it did not answer in time. */
  readonly code: number | null;
  readonly lines: readonly string[];
}

/** `query`: as `--query-gpu=name`. Where the tool is missing, no process is started. */
export async function askNvidiaSmi(query: string, env: NodeJS.ProcessEnv): Promise<SmiAnswer | null> {
  if (!isOnPath(env)) return null;
  const { code, output } = await runCommand(PROGRAM, [query, '--format=csv,noheader,nounits'], {
    env,
    timeoutMs: WITHIN_MS,
  });
  return { code, lines: output.split('\n').filter((line) => line.trim() !== '') };
}

/** Names of the GPUs that processes of this environment see; empty if unknown. */
export async function findGpus(env: NodeJS.ProcessEnv): Promise<string[]> {
  const answer = await askNvidiaSmi('--query-gpu=name', env);
  return answer?.code === 0 ? visibleOf(answer.lines, env) : [];
}

/** Filters by `CUDA_VISIBLE_DEVICES` as CUDA does: it ends at the first invalid name, such as -1. */
export function visibleOf<T>(gpus: readonly T[], env: NodeJS.ProcessEnv): T[] {
  const visible = env['CUDA_VISIBLE_DEVICES'];
  if (visible === undefined) return [...gpus];
  const seen: T[] = [];
  for (const name of visible.split(',').map((text) => text.trim())) {
    // Names such as GPU-5f2a… are not looked up: any GPU represents one of them.
    const index = /^(GPU|MIG)-/.test(name) ? seen.length : /^\d+$/.test(name) ? Number(name) : -1;
    const gpu = gpus[index];
    if (gpu === undefined) break;
    seen.push(gpu);
  }
  return seen;
}

function isOnPath(env: NodeJS.ProcessEnv): boolean {
  const folders = (env['PATH'] ?? '').split(delimiter).filter(Boolean);
  return folders.some((folder) => existsSync(join(folder, PROGRAM)));
}
