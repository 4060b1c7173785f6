/** The GPU worker by itself, in the foreground of a machine of its own: as this project's configuration has it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENGINE_KEY_VARIABLE } from '../../core/wire-constants.ts';
import { TemperError } from '../../core/failures.ts';
import { loadConfig } from '../config.ts';
import { cacheFolder, GPU_WORKER_FOLDER, makeProjectFolders, storeUri } from '../folders.ts';
import { gpuWorkerEnvironment } from './child-environment.ts';
import { engineArguments } from './children.ts';
import type { StackEvent } from '../events.ts';
import { leashed } from '../leashed.ts';
import { absoluteModels } from './specify.ts';
import { openPythonEnvironment } from '../install/python-environment.ts';

export interface GpuWorkerOptions {
  readonly project: string;
  readonly env: NodeJS.ProcessEnv;
  /** Ends the worker in order: a step in hand is given up, and made again from the store. */
  readonly signal: AbortSignal;
  readonly onEvent: (event: StackEvent) => void;
  /** Flags of `python -m temper_gpu`, which checks them. */
  readonly flags: readonly string[];
}

/** Its exit code; null where a signal ended it. Its output is this process's. */
export async function runGpuWorker({ project, env, signal, onEvent, flags }: GpuWorkerOptions): Promise<number | null> {
  const config = await loadConfig(project, env);
  const key = env[config.engine.keyVariable];
  if (!key) throw missingKey(config.engine.keyVariable);
  const folders = makeProjectFolders(project);
  const models = join(folders.state, 'gpu-worker-models.json');
  writeFileSync(models, `${JSON.stringify(absoluteModels(project, config.models), null, 2)}\n`);
  const { python } = await openPythonEnvironment({ env, cache: cacheFolder(env), signal, onEvent });
  const configured = engineArguments({ ...config, storeUri: storeUri(config.store, folders), models });
  const args = ['-m', 'temper_gpu', ...configured, ...flags, '--leash'];
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
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  const end = () => void child.stdin.end();
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}

function missingKey(variable: string): TemperError {
  const rule = `the GPU worker needs ${variable}, the key that its clients send, which is not set`;
  return new TemperError(
    'BadConfig',
    `${rule}; export ${variable}="$(openssl rand -base64 32)", and the same key wherever its clients run`,
  );
}
