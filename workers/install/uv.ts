/** uv, which installs Python packages: the user's own, or a pinned one in the cache. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand, type CommandOptions, type CommandResult } from '../process/command.ts';
import { GPU_WORKER_FOLDER } from '../project/folders.ts';
import { installOnce, requireSuccess, saysDiskFull, type InstallOptions, type Progress } from './install.ts';
import type { Interpreter } from './python-interpreter.ts';

/** Names one version, by hash. */
const UV_LOCK = join(GPU_WORKER_FOLDER, 'requirements-uv.lock');

export interface Uv {
  run(args: readonly string[], options?: Pick<CommandOptions, 'env' | 'timeoutMs' | 'onLine'>): Promise<CommandResult>;
  makeVenv(python: Interpreter, folder: string): Promise<CommandResult>;
}

/** Path of a virtual environment's program. */
export function programOf(environment: string, program: string): string {
  return join(environment, 'bin', program);
}

export async function hasOwnUv(env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await runCommand('uv', ['--version'], { env, timeoutMs: 10_000 })).code === 0;
}

/** `own`: the user's uv, with its cache, is used. */
export async function openUv(
  python: Interpreter,
  own: boolean,
  progress: Progress,
  options: InstallOptions,
): Promise<Uv> {
  const { env, cache, signal } = options;
  const program = own ? 'uv' : await bootstrapUv(python, progress, options);
  // Beside the environments, so that files are linked and not copied.
  const ourCache = own || env.UV_CACHE_DIR ? null : join(cache, 'uv-cache');
  const indexEnv = hasUvIndex(env) ? {} : await pipSettings(python, env);
  const uvEnv = { ...env, ...(ourCache === null ? {} : { UV_CACHE_DIR: ourCache }), ...indexEnv };
  const run: Uv['run'] = async (args, extra = {}) => {
    const settings = { ...extra, env: { ...uvEnv, ...extra.env }, signal };
    const result = await runCommand(program, [...args, '--color', 'never', '--no-progress'], settings);
    // A full disk stays full if what was downloaded stays.
    if (result.code !== 0 && ourCache !== null && saysDiskFull(result.output))
      rmSync(ourCache, { recursive: true, force: true });
    return result;
  };
  const makeVenv: Uv['makeVenv'] = (interpreter, folder) =>
    run(['venv', '--relocatable', '--clear', '--python', interpreter.executable, folder]);
  return { run, makeVenv };
}

async function bootstrapUv(
  python: Interpreter,
  progress: Progress,
  { env, cache, signal }: InstallOptions,
): Promise<string> {
  const version = /^uv==(\S+)/m.exec(readFileSync(UV_LOCK, 'utf8'))?.[1];
  const folder = join(cache, 'uv', `${version}-python${python.version}`);
  const make = async (partial: string) => {
    progress.report('installing uv, which installs the rest');
    const making = runCommand(python.executable, ['-m', 'venv', partial], { env, signal });
    await requireSuccess('making a virtual environment', making);
    const locked = ['--require-hashes', '--no-deps', '-r', UV_LOCK];
    const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-cache-dir', ...locked];
    await requireSuccess('installing uv with pip', runCommand(programOf(partial, 'python'), pip, { env, signal }));
  };
  await installOnce(folder, make, {
    onWait: () => progress.report('waiting for another process that installs uv'),
    signal,
  });
  return programOf(folder, 'uv');
}

function hasUvIndex(env: NodeJS.ProcessEnv): boolean {
  return ['UV_DEFAULT_INDEX', 'UV_INDEX', 'UV_INDEX_URL', 'UV_CONFIG_FILE'].some((name) => env[name]);
}

/** Settings of pip for index, mirror and certificates apply to uv too, which does not read them. */
const FROM_PIP: Readonly<Record<string, string>> = {
  'index-url': 'UV_DEFAULT_INDEX',
  'extra-index-url': 'UV_INDEX',
  'find-links': 'UV_FIND_LINKS',
  'trusted-host': 'UV_INSECURE_HOST',
  cert: 'SSL_CERT_FILE',
};

async function pipSettings(python: Interpreter, env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const asking = { env, timeoutMs: 15_000 };
  const { code, output } = await runCommand(python.executable, ['-m', 'pip', 'config', 'list'], asking);
  if (code !== 0) return {};
  const settings: NodeJS.ProcessEnv = {};
  for (const line of output.split('\n')) {
    const [, name = '', value = ''] = /^[^=]*\.([a-z-]+)='(.*)'$/.exec(line.trim()) ?? [];
    const variable = FROM_PIP[name];
    if (variable !== undefined && !env[variable] && isThere(name, value))
      settings[variable] = value
        .split(/\\n|\s+/)
        .filter(Boolean)
        .join(name === 'find-links' ? ',' : ' ');
  }
  return settings;
}

function isThere(name: string, value: string): boolean {
  return name !== 'cert' || existsSync(value);
}
