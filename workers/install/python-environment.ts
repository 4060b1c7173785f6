/** The GPU worker's Python environment: made once in the cache, keyed by what is in it, or TEMPER_PYTHON. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { runCommand } from '../process/command.ts';
import { withFileLock } from '../../store/bytes/file-lock.ts';
import { GPU_WORKER_FOLDER } from '../project/folders.ts';
import {
  explainFailure,
  installOnce,
  isComplete,
  requireSuccess,
  withProgress,
  type InstallOptions,
  type Progress,
} from './install.ts';
import { installRequirements, installTorch } from './python-packages.ts';
import { findInterpreter, type Interpreter } from './python-interpreter.ts';
import { hasOwnUv, openUv, programOf } from './uv.ts';

export interface PythonEnvironment {
  readonly python: string;
  /** Its folder in the cache; null for TEMPER_PYTHON. */
  readonly folder: string | null;
}

type Host = Pick<NodeJS.Process, 'platform' | 'arch'>;

export interface PythonOptions extends InstallOptions {
  /** Folder of the lock files; by default the GPU worker's own. */
  readonly requirements?: string;
}

export const TORCH_LOCKS = ['requirements-torch.lock', 'requirements-torch-cpu.lock'] as const;
const NEEDED = ['torch', 'transformers', 'safetensors', 'temporalio', 'starlette', 'uvicorn', 'orjson', 'uvloop'];
/** Modules that the GPU worker imports, too: loaded once, they are kept compiled in the environment. */
const SLOW_TO_COMPILE = [
  'transformers.modeling_utils',
  'transformers.models.auto.modeling_auto',
  'transformers.models.auto.tokenization_auto',
  'pydantic.fields',
  'starlette.responses',
  'torch._dynamo',
];

export async function openPythonEnvironment(options: PythonOptions): Promise<PythonEnvironment> {
  if (options.env.TEMPER_PYTHON) return explicitPython(options.env.TEMPER_PYTHON, NEEDED);
  requirePlatform();
  const own = await hasOwnUv(options.env);
  const python = await findInterpreter(options.env, !own);
  const folder = join(options.cache, 'python', await environmentKey(python, options));
  const environment = { python: programOf(folder, 'python'), folder };
  if (isComplete(folder)) return environment;
  await withProgress('python', options.onEvent, 'the Python packages are installed', async (progress) => {
    const onWait = () => progress.report('waiting for another process that installs the Python packages');
    const make = (partial: string) => makeEnvironment(partial, python, own, progress, options);
    await installOnce(folder, make, { onWait, signal: options.signal });
  });
  return environment;
}

/** Darwin's number of macOS 14. */
const LEAST_DARWIN = 23;

/** PyTorch has no packages for older Macs: without this, installing would end with pip's list of versions. */
export function requirePlatform({ platform, arch }: Host = process, version = release()): void {
  if (platform !== 'darwin' || (arch === 'arm64' && Number.parseInt(version, 10) >= LEAST_DARWIN)) return;
  throw badConfig(
    `on a Mac, PyTorch needs macOS 14 or later on Apple silicon, and a Node for arm64; this is Darwin ${version} on ${arch}; use another machine, or set TEMPER_PYTHON to a Python that has all packages`,
  );
}

async function makeEnvironment(
  partial: string,
  python: Interpreter,
  own: boolean,
  progress: Progress,
  options: PythonOptions,
): Promise<void> {
  const uv = await openUv(python, own, progress, options);
  progress.report(`making a Python ${python.version} environment`);
  await requireSuccess('making the Python environment', uv.makeVenv(python, partial));
  const place = { uv, python: programOf(partial, 'python'), progress, accelerated: await hasAccelerator(options.env) };
  const [standard, cpu] = TORCH_LOCKS.map((name) => requirementFile(name, options));
  await installTorch({ default: standard!, cpu: cpu! }, place);
  await installRequirements(requirementFile('requirements.lock', options), place);
  progress.report('checking that the packages load');
  await loadOnce(place.python, [...NEEDED, ...SLOW_TO_COMPILE], options);
}

async function loadOnce(python: string, modules: readonly string[], { env }: PythonOptions): Promise<void> {
  // An image for containers often sets the variable: each start would compile the packages again, for half of its time.
  const loading = runCommand(python, ['-c', `import ${modules.join(', ')}`], {
    env: { ...env, PYTHONDONTWRITEBYTECODE: '' },
  });
  await requireSuccess('loading the installed Python packages', loading);
}

type Place = Pick<InstallOptions, 'env' | 'cache'>;

/** Describes the Python; throws for an obstacle. Installs nothing. */
export async function pythonState({ env, cache }: Place): Promise<string> {
  if (env.TEMPER_PYTHON) return `TEMPER_PYTHON, ${(await explicitPython(env.TEMPER_PYTHON, NEEDED)).python}`;
  const { version, folder } = await placeOfEnvironment({ env, cache });
  return isComplete(folder)
    ? `Python ${version}, ${folder}`
    : `Python ${version}; the first start installs its packages`;
}

async function placeOfEnvironment({ env, cache }: Place): Promise<{ version: string; folder: string }> {
  requirePlatform();
  const python = await findInterpreter(env, !(await hasOwnUv(env)));
  const options = { env, cache, onEvent: () => undefined };
  return { version: python.version, folder: join(cache, 'python', await environmentKey(python, options)) };
}

/** Adds the tools of the Python tests; asked for by `npm test` alone. */
export async function installDevTools(environment: PythonEnvironment, options: PythonOptions): Promise<void> {
  const { folder, python } = environment;
  if (folder === null) {
    const named = readRequirement('requirements-dev.in', options).matchAll(/^([\w-]+)==/gm);
    await explicitPython(
      python,
      Array.from(named, ([, name]) => name!.replaceAll('-', '_')),
    );
    return;
  }
  const file = requirementFile('requirements-dev.lock', options);
  const marker = join(folder, `.dev-${sha256(readRequirement('requirements-dev.lock', options)).slice(0, 16)}`);
  if (existsSync(marker)) return;
  const own = await hasOwnUv(options.env);
  await withProgress('python', options.onEvent, 'the tools of the Python tests are installed', async (progress) => {
    const add = async () => {
      const uv = await openUv(await findInterpreter(options.env, !own), own, progress, options);
      await installRequirements(file, { uv, python, progress, accelerated: false });
      // transformers imports its accelerate wherever that is installed.
      await loadOnce(python, ['peft'], options);
      writeFileSync(marker, '');
    };
    const onWait = () => progress.report('waiting for another process that installs Python packages');
    await withFileLock(`${folder}.lock`, () => explainFailure(folder, add), onWait, options.signal);
  });
}

/** A Python of the user's own is checked, never changed. */
async function explicitPython(python: string, modules: readonly string[]): Promise<PythonEnvironment> {
  const question = `import importlib.util as u; print("missing:", *[m for m in ${JSON.stringify(modules)} if not u.find_spec(m)])`;
  const { code, output } = await runCommand(python, ['-c', question], { timeoutMs: 20_000 });
  if (code !== 0)
    throw badConfig(`TEMPER_PYTHON must be a Python 3.11 to 3.13, but ${python} cannot be run; correct or unset it`);
  const missing = (/missing: *(.*)/.exec(output)?.[1] ?? '').trim();
  if (missing === '') return { python, folder: null };
  throw badConfig(
    `TEMPER_PYTHON (${python}) must have all packages installed, but lacks ${missing}; install them or unset it`,
  );
}

/** Another lock, Python or kind of machine is another environment. */
async function environmentKey(python: Interpreter, options: PythonOptions): Promise<string> {
  const parts = [
    ...['requirements.lock', ...TORCH_LOCKS].map((name) => readRequirement(name, options)),
    python.version,
    process.platform,
    process.arch,
    (await hasAccelerator(options.env)) ? 'accelerated' : 'cpu',
  ];
  return sha256(parts.join('\0')).slice(0, 16);
}

/** PyTorch's default build, which has CUDA, is chosen if NVIDIA's driver answers. */
export async function hasAccelerator(env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await runCommand('nvidia-smi', ['-L'], { env, timeoutMs: 10_000 })).code === 0;
}

function requirementFile(name: string, { requirements = GPU_WORKER_FOLDER }: PythonOptions): string {
  return join(requirements, name);
}

function readRequirement(name: string, options: PythonOptions): string {
  return readFileSync(requirementFile(name, options), 'utf8');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
