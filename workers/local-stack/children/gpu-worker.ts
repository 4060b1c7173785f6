/** A GPU worker alone: in the foreground of a separate machine, or as the engine of a command. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GpuWorkerSettings } from '../../../core/contract/engine.ts';
import { ENGINE_KEY_VARIABLE } from '../../../core/contract/wire-constants.ts';
import { badConfig, type TemperError } from '../../../core/contract/failures.ts';
import type { MergedEngine, TemperConfig } from '../../config/config.ts';
import { cacheFolder, GPU_WORKER_FOLDER, makeProjectFolders, projectFolders, storeUri } from '../../project/folders.ts';
import { gpuWorkerEnvironment } from '../../process/child-environment.ts';
import { gpuWorkerArguments } from './children.ts';
import type { StackEvent } from '../../events.ts';
import { leashed } from '../../process/command.ts';
import { absoluteModels } from '../../base-models/known-models.ts';
import { openPythonEnvironment } from '../../install/python-environment.ts';
import { vllmPythonOf } from '../../install/vllm-environment.ts';

export interface GpuWorkerOptions {
  readonly project: string;
  readonly env: NodeJS.ProcessEnv;
  /** Ends the worker in order: a step in hand is given up, and made again from the store. */
  readonly signal: AbortSignal;
  readonly onEvent: (event: StackEvent) => void;
  /** Its address and its role. */
  readonly place: Partial<GpuWorkerSettings>;
}

/** Configuration whose engine kind is decided. */
export type StartedConfig = Omit<TemperConfig, 'engine'> & { readonly engine: MergedEngine };

/** Exit code; null if a signal ended it. Its output is this process's. */
export async function runGpuWorker(options: GpuWorkerOptions, config: StartedConfig): Promise<number | null> {
  const { project, env } = options;
  const key = env[config.engine.keyVariable];
  if (!key) throw missingKey(config.engine.keyVariable);
  const models = join(makeProjectFolders(project).state, 'gpu-worker-models.json');
  writeFileSync(models, `${JSON.stringify(absoluteModels(project, config.models), null, 2)}\n`);
  const child = await spawnGpuWorker(options, { config, key, models, output: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}

export interface GpuWorkerPlace {
  readonly config: Pick<StartedConfig, 'store' | 'queues' | 'engine'>;
  /** That its clients send. */
  readonly key: string;
  /** The file with its base models. */
  readonly models: string;
  /** `pipe`: the caller reads it. */
  readonly output: 'inherit' | 'pipe';
}

/** Installs what is missing. The worker ends with this process, or when `signal` is aborted. */
export async function spawnGpuWorker(
  { project, env, signal, onEvent, place }: GpuWorkerOptions,
  { config, key, models, output }: GpuWorkerPlace,
): Promise<ChildProcess> {
  const vllmPython = await vllmPythonOf(config.engine, { env, cache: cacheFolder(env) });
  const { python } = await openPythonEnvironment({ env, cache: cacheFolder(env), signal, onEvent });
  const spec = { ...config, storeUri: storeUri(config.store, projectFolders(project)), vllmPython };
  const args = ['-m', 'temper_gpu', ...gpuWorkerArguments(spec, models, place)];
  const [command, commandArgs] = leashed(python, args);
  const child = spawn(command, commandArgs, {
    env: {
      ...gpuWorkerEnvironment(env),
      PYTHONPATH: GPU_WORKER_FOLDER,
      PYTHONUNBUFFERED: '1',
      [ENGINE_KEY_VARIABLE]: key,
    },
    cwd: project,
    // The end of its stdin ends it, should this process die; Ctrl-C reaches both.
    stdio: ['pipe', output, output],
  });
  const end = () => void child.stdin?.end();
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  return child;
}

function missingKey(variable: string): TemperError {
  const rule = `the GPU worker needs ${variable}, the key that its clients send, which is not set`;
  return badConfig(
    `${rule}; export ${variable}="$(openssl rand -base64 32)", and the same key wherever its clients run`,
  );
}
