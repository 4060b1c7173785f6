/** Installs Temporal's CLI into the cache: the binary if it can be downloaded, else built from its Go module. */
import { createHash } from 'node:crypto';
import { createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TemperError } from '../../core/failures.ts';
import { runCommand } from '../process/command.ts';
import { buildGoProgram, hasGo } from './go-program.ts';
import {
  installOnce,
  isDiskFull,
  requireSuccess,
  withProgress,
  type InstallOptions,
  type Progress,
} from './install.ts';

/** Newer tags carry a `replace` in their go.mod, which `go install` refuses. */
export const TEMPORAL_CLI_VERSION = '1.5.1';

/**
 * sha256 of the release's archives, as package managers publish them. A platform without one, and a download with
 * another one, is built from source, where Go holds every module to its checksum database.
 */
const ARCHIVES: Readonly<Record<string, string>> = {
  'linux-amd64': 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  'linux-arm64': 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  'darwin-amd64': 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  'darwin-arm64': 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
};

const DOWNLOADS = 'https://temporal.download/cli';
const MAX_ARCHIVE_BYTES = 512 * 1024 ** 2;
const SILENCE_MS = 20_000;
const GO_MODULE = `github.com/temporalio/cli/cmd/temporal@v${TEMPORAL_CLI_VERSION}`;
/** Checksum of the module's source, from `go version -m`; its go.mod names the versions of all others. */
const GO_MODULE_SUM = 'h1:0RZMk14BWxz44Xg6ciDQvpfAMffoG3J7/K03ql80teY=';
/** Count of `go list -deps`, for an estimate of the time left. */
const GO_PACKAGES = 1298;
const GO_MODULES = 160;
const PLATFORMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin', win32: 'windows' };
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

export function installTemporalCli(folder: string, program: string, options: InstallOptions): Promise<void> {
  return withProgress('temporal-cli', options.onEvent, 'the Temporal server is installed', async (progress) => {
    const make = async (partial: string) => {
      const downloadFailure = await download(partial, program, progress, options.signal);
      if (downloadFailure !== null) await build(partial, program, progress, downloadFailure, options);
    };
    const onWait = () => progress.report('waiting for another process that installs the Temporal server');
    await installOnce(folder, make, { onWait, signal: options.signal });
  });
}

/** Null if it worked, else why not. */
async function download(
  partial: string,
  program: string,
  progress: Progress,
  signal?: AbortSignal,
): Promise<string | null> {
  progress.report('looking for a prebuilt Temporal server');
  const archive = join(partial, 'archive');
  try {
    const { archiveUrl, sha256 } = await describeArchive();
    checkArchive(await fetchTo(archiveUrl, archive, progress, signal), sha256);
    await requireSuccess('unpacking the Temporal server', runCommand('tar', ['-xf', archive, '-C', partial, program]));
    rmSync(archive);
    return null;
  } catch (error) {
    if (isDiskFull(error) || signal?.aborted) throw error;
    rmSync(archive, { force: true });
    return error instanceof Error ? error.message : String(error);
  }
}

function checkArchive(found: string, pinned: string): void {
  if (found !== pinned) throw new Error(`the download has the sha256 ${found}, its release has ${pinned}`);
}

async function describeArchive(): Promise<{ archiveUrl: string; sha256: string }> {
  const platform = PLATFORMS[process.platform];
  const arch = ARCHITECTURES[process.arch];
  const sha256 = ARCHIVES[`${platform}-${arch}`];
  if (!platform || !arch || !sha256)
    throw new Error(`no prebuilt binary is known for ${process.platform} ${process.arch}`);
  const url = `${DOWNLOADS}/v${TEMPORAL_CLI_VERSION}?${new URLSearchParams({ platform, arch, format: 'tar.gz' }).toString()}`;
  const response = await fetch(url, { signal: AbortSignal.timeout(SILENCE_MS) });
  if (!response.ok) throw new Error(`the download returned status ${response.status}`);
  const { archiveUrl } = (await response.json()) as { archiveUrl: string };
  return { archiveUrl, sha256 };
}

/** Returns the sha256 of what came. */
async function fetchTo(url: string, file: string, progress: Progress, signal?: AbortSignal): Promise<string> {
  const silence = new AbortController();
  const onSilence = () => silence.abort(new Error(`the download sent nothing for ${SILENCE_MS / 1000} s`));
  let timer = setTimeout(onSilence, SILENCE_MS);
  try {
    const response = await fetch(url, { signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal });
    if (!response.ok || response.body === null) throw new Error(`the download returned status ${response.status}`);
    const total = Number(response.headers.get('content-length')) || null;
    let done = 0;
    const hash = createHash('sha256');
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, next) {
        clearTimeout(timer);
        timer = setTimeout(onSilence, SILENCE_MS);
        done += chunk.length;
        hash.update(chunk);
        if (done > MAX_ARCHIVE_BYTES) return next(new Error('the download is larger than any release'));
        progress.report('downloading the Temporal server', { done, total, unit: 'bytes' });
        next(null, chunk);
      },
    });
    await pipeline(Readable.fromWeb(response.body as never), counted, createWriteStream(file));
    return hash.digest('hex');
  } finally {
    clearTimeout(timer);
  }
}

async function build(
  partial: string,
  program: string,
  progress: Progress,
  downloadFailure: string,
  { env, signal }: InstallOptions,
): Promise<void> {
  if (!(await hasGo(env))) {
    throw new TemperError(
      'BadConfig',
      `a Temporal server is needed, but none is on PATH and the download failed (${downloadFailure}); install Temporal's CLI, or Go so that it can be built, or set TEMPORAL_ADDRESS`,
    );
  }
  const counts = { modules: 0, packages: 0 };
  progress.report('building the Temporal server from source (about 4 minutes, only once)');
  await buildGoProgram(partial, program, {
    module: GO_MODULE,
    sum: GO_MODULE_SUM,
    what: 'building the Temporal server',
    env,
    signal,
    onLine: (line) => reportBuild(line, counts, progress),
  });
}

function reportBuild(line: string, counts: { modules: number; packages: number }, progress: Progress): void {
  if (line.startsWith('go: downloading')) {
    counts.modules += 1;
    progress.report('downloading sources of the Temporal server', {
      done: counts.modules,
      total: Math.max(GO_MODULES, counts.modules),
      unit: 'modules',
    });
  } else if (!line.startsWith('go:')) {
    counts.packages += 1;
    progress.report('building the Temporal server from source', {
      done: counts.packages,
      total: Math.max(GO_PACKAGES, counts.packages),
      unit: 'packages',
    });
  }
}
