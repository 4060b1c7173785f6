/** Steps that install the GPU worker's packages, in order, with their progress. */
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
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
  const count = countPackages(measureGrowth(python));
  const report = () => progress.report(count.describe(message), count.now());
  progress.report(message);
  const beat = setInterval(report, 1000);
  try {
    const onLine = (line: string) => {
      count.read(line);
      report();
    };
    await requireSuccess(message, uv.run(['pip', 'install', '--python', python, ...requirements], { onLine }));
  } finally {
    clearInterval(beat);
  }
}

/** Bytes that the disk has taken up since: other programs write too, so it only says that something moves. */
function measureGrowth(path: string): () => number {
  const free = () => {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize;
  };
  const before = free();
  return () => before - free();
}

const UNITS: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };
/** Wheels are unpacked as they come: about that part of what is written was downloaded. */
const PACKED_SHARE = 0.55;
const NEARLY = 0.97;

/** Reads uv's own words: `Resolved 29 packages`, `Downloading torch (505.4MiB)`, ` Downloaded torch`, `Prepared …`. */
export function countPackages(grown: () => number) {
  const pending = new Map<string, number>();
  let packages: number | null = null;
  let whole = 0;
  let shown = 0;
  let total = 0;
  let phase = '';
  return {
    read(line: string): void {
      const resolved = /^Resolved (\d+) packages?/.exec(line)?.[1];
      if (resolved !== undefined) packages = Number(resolved);
      const [, name, size, unit] = /^Downloading (\S+) \(([\d.]+)([a-z]\w*)\)/i.exec(line) ?? [];
      if (name !== undefined) {
        pending.set(name, Number(size) * (UNITS[unit ?? ''] ?? 1));
        total += pending.get(name) ?? 0;
      }
      const downloaded = /^\s*Downloaded (\S+)/.exec(line)?.[1];
      if (downloaded !== undefined) {
        whole += pending.get(downloaded) ?? 0;
        pending.delete(downloaded);
      }
      if (line.startsWith('Prepared ')) phase = 'writing them to disk';
    },
    /** uv counts a package when it is whole, and the largest is a fifth of all: between, the disk tells. Null without large packages. */
    now(): { done: number; total: number; unit: 'bytes' } | undefined {
      if (total === 0) return undefined;
      const estimate = Math.min(grown() * PACKED_SHARE, total * NEARLY);
      shown = Math.max(shown, whole, pending.size === 0 ? total : estimate);
      return { done: Math.round(shown), total: Math.round(total), unit: 'bytes' };
    },
    describe(message: string): string {
      const largest = [...pending].toSorted(([, a], [, b]) => b - a)[0]?.[0];
      const what = phase || (largest === undefined ? '' : `downloading ${largest}`);
      return [message, packages === null ? '' : `${packages} in all`, what].filter(Boolean).join(', ');
    },
  };
}
