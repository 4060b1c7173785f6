/** Steps that install the GPU worker's packages, in order, with their progress. */
import { requireSuccess, type Progress } from './install.ts';
import type { Uv } from './uv.ts';

export interface Place {
  readonly uv: Uv;
  readonly python: string;
  readonly progress: Progress;
  /** A GPU that PyTorch can use is in this machine. */
  readonly accelerated: boolean;
}

const TORCH_INDEX_WITHIN_MS = 10_000;

/** Lock files of PyTorch's builds. */
export interface TorchLocks {
  /** The package registry's own build. */
  readonly default: string;
  readonly cpu: string;
}

/**
 * PyTorch first: its CPU build is a twentieth of the default one, but has a separate index that some networks block.
 * Every package must be in its lock file, with its hash.
 */
export async function installTorch(locks: TorchLocks, place: Place): Promise<void> {
  const isCpu = await canInstallCpuBuild(locks.cpu, place);
  const message = `installing PyTorch (${isCpu ? 'CPU' : 'default'} build)`;
  await install(isCpu ? [CPU_INDEX, ...locked(locks.cpu)] : locked(locks.default), message, place);
}

/** The rest, to the byte what the lock file names; it names every requirement but PyTorch and what that brings. */
export async function installRequirements(lockFile: string, place: Place): Promise<void> {
  await install(locked(lockFile), 'installing Python packages', place);
}

const CPU_INDEX = '--torch-backend=cpu';
const locked = (lockFile: string): string[] => ['--require-hashes', '--no-deps', '-r', lockFile];

/** Its default build on other systems than Linux is the small one. */
async function canInstallCpuBuild(lockFile: string, { uv, python, progress, accelerated }: Place): Promise<boolean> {
  if (accelerated || process.platform !== 'linux') return false;
  progress.report('choosing the PyTorch build');
  const tried = await uv.run(['pip', 'install', '--dry-run', '--python', python, CPU_INDEX, ...locked(lockFile)], {
    env: { UV_HTTP_TIMEOUT: String(TORCH_INDEX_WITHIN_MS / 1000), UV_HTTP_RETRIES: '0' },
    timeoutMs: TORCH_INDEX_WITHIN_MS,
  });
  return tried.code === 0;
}

async function install(
  requirements: readonly string[],
  message: string,
  { uv, python, progress }: Place,
): Promise<void> {
  const describe = describePackages(message);
  progress.report(message);
  const onLine = (line: string) => progress.report(describe(line));
  await requireSuccess(message, uv.run(['pip', 'install', '--python', python, ...requirements], { onLine }));
}

/** Reads uv's own words: `Resolved 29 packages`, `Downloading torch (505.4MiB)`, ` Downloaded torch`, `Prepared …`. */
export function describePackages(message: string): (line: string) => string {
  const pending = new Map<string, string>();
  let packages = '';
  let phase = '';
  return (line) => {
    const resolved = /^Resolved (\d+) packages?/.exec(line)?.[1];
    if (resolved !== undefined) packages = `${resolved} in all`;
    const [, name, size] = /^Downloading (\S+) \(([^)]+)\)/.exec(line) ?? [];
    if (name !== undefined && size !== undefined) pending.set(name, `downloading ${name}, ${size}`);
    pending.delete(/^\s*Downloaded (\S+)/.exec(line)?.[1] ?? '');
    if (line.startsWith('Prepared ')) phase = 'writing them to disk';
    return [message, packages, phase || [...pending.values()].at(-1)].filter(Boolean).join(', ');
  };
}
