import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import type { StackEvent } from '../../../workers/events.ts';
import {
  installDevTools,
  openPythonEnvironment,
  requirePlatform,
  type PythonOptions,
} from '../../../workers/install/python-environment.ts';
import { describePackages } from '../../../workers/install/python-packages.ts';
import { fakePrograms, pythonScript, type FakePrograms } from './fake-programs.ts';

/** Makes an environment of one program; refuses PyTorch's CPU index, as many a network does. */
const UV = `
fs.appendFileSync(__dirname + '/../uv.log', args.join(' ') + '\\n');
if (args[0] === 'venv') {
  const folder = args[args.indexOf('--python') + 2];
  fs.mkdirSync(folder + '/bin', { recursive: true });
  fs.writeFileSync(folder + '/bin/python', '#!/bin/sh\\necho "[$PYTHONDONTWRITEBYTECODE] $*" > "\${0%/*}/loading"\\n', { mode: 0o755 });
}
if (args.includes('--torch-backend=cpu')) process.exit(2);
if (args.includes('--require-hashes') && !args.includes('--dry-run') && fs.existsSync(__dirname + '/../full')) {
  console.error('error: failed to write to file: No space left on device (os error 28)');
  process.exit(2);
}
if (args[0] === 'pip') console.error('Resolved 2 packages in 1ms\\nDownloading torch (100.0MiB)\\n Downloaded torch\\nPrepared 2 packages in 1s');
`;

let programs: FakePrograms;
let events: StackEvent[];

beforeEach(() => {
  programs = fakePrograms();
  events = [];
});

function options(env: NodeJS.ProcessEnv = {}): PythonOptions {
  const requirements = join(programs.folder, 'requirements');
  mkdirSync(requirements, { recursive: true });
  writeFileSync(join(requirements, 'requirements-torch.lock'), 'torch==2.13.0 --hash=sha256:00\n');
  writeFileSync(join(requirements, 'requirements-torch-cpu.lock'), 'torch==2.13.0+cpu --hash=sha256:00\n');
  writeFileSync(join(requirements, 'requirements.lock'), 'six==1.17.0 --hash=sha256:00\n');
  writeFileSync(join(requirements, 'requirements-dev.lock'), 'pytest==9.0.0 --hash=sha256:00\n');
  writeFileSync(join(requirements, 'requirements-dev.in'), '# Tools\npytest==9.0.0\ndata-model==0.1\n');
  const onEvent = (event: StackEvent) => void events.push(event);
  return { env: { ...programs.env, ...env }, cache: join(programs.folder, 'cache'), requirements, onEvent };
}

const open = (env?: NodeJS.ProcessEnv) => openPythonEnvironment(options(env));
const uvCalls = () => readFileSync(join(programs.folder, 'uv.log'), 'utf8').trim().split('\n');

it('says what to install where there is no Python', async () => {
  await expect(open()).rejects.toMatchObject({
    type: 'BadConfig',
    message:
      'Python 3.11 to 3.13 is needed, found none on PATH; install Python 3.13 (or set TEMPER_PYTHON to a Python that has everything installed)',
  });
});

it('names every Python that is too old, too new or of a kind without packages', async () => {
  programs.add('python3', pythonScript('3.10.4'));
  programs.add('python3.13', pythonScript('3.13.1', { usable: false }));
  programs.add('python', `console.error('SyntaxError: invalid syntax'); process.exit(1);`);
  await expect(open()).rejects.toThrow(/found 3\.13\.1 \(.*\), 3\.10\.4 \(.*\), an older version \(python\); install/);
});

it('says what Debian packages apart', async () => {
  programs.add('python3.11', pythonScript('3.11.2', { hasVenv: false }));
  await expect(open()).rejects.toThrow(/lacks venv and ensurepip.*apt install python3\.11-venv, or install uv/);
});

it('keeps the packages compiled, also where nothing else may be', async () => {
  programs.add('python3.12', pythonScript('3.12.2'));
  programs.add('uv', UV);
  const { folder } = await open({ PYTHONDONTWRITEBYTECODE: '1' });
  expect(readFileSync(join(folder!, 'bin', 'loading'), 'utf8')).toMatch(/^\[\] -c import torch, .*, torch\._dynamo$/m);
});

it('does without venv where there is uv', async () => {
  programs.add('python3.12', pythonScript('3.12.2', { hasVenv: false }));
  programs.add('uv', UV);
  await open();
  expect(uvCalls().find((call) => call.startsWith('venv'))).toContain('bin/python3.12');
});

it('installs PyTorch first, then what the lock file names, once', async () => {
  programs.add('python3', pythonScript('3.12.1'));
  programs.add('uv', UV);
  const environment = await open();
  expect(existsSync(environment.python)).toBe(true);
  const installs = uvCalls().filter((call) => call.startsWith('pip install') && !call.includes('--dry-run'));
  expect(
    installs.map((call) =>
      call
        .replace(/--python \S+ /, '')
        .replace(/ --color.*/, '')
        .replace(/-r \S+\//, '-r '),
    ),
  ).toEqual([
    'pip install --require-hashes --no-deps -r requirements-torch.lock',
    'pip install --require-hashes --no-deps -r requirements.lock',
  ]);
  const messages = events.map((event) => (event.kind === 'progress' ? event.message : ''));
  expect(messages.some((message) => /downloading \S+, 100/.test(message))).toBe(true);
  expect(events.at(-1)).toMatchObject({ finished: true });
  const calls = uvCalls().length;
  expect(await open()).toEqual(environment);
  expect(uvCalls().slice(calls)).toEqual(['--version']);
});

it('is made by one of two starts at once', async () => {
  programs.add('python3', pythonScript('3.12.1'));
  programs.add('uv', UV);
  const [first, second] = await Promise.all([open(), open()]);
  expect(first).toEqual(second);
  expect(uvCalls().filter((call) => call.startsWith('venv'))).toHaveLength(1);
});

it('is made anew where an earlier start was killed half-way', async () => {
  programs.add('python3', pythonScript('3.12.1'));
  programs.add('uv', UV);
  const { folder } = await open();
  rmSync(join(folder ?? '', '.complete'));
  await open();
  expect(uvCalls().filter((call) => call.startsWith('venv'))).toHaveLength(2);
});

it('names the folder where the disk is full, and leaves nothing half-made', async () => {
  programs.add('python3', pythonScript('3.12.1'));
  programs.add('uv', UV);
  writeFileSync(join(programs.folder, 'full'), '');
  const folder = join(programs.folder, 'cache', 'python');
  await expect(open()).rejects.toMatchObject({
    type: 'BadConfig',
    message: expect.stringMatching(
      new RegExp(`^the disk is full while installing into ${folder}; .*TEMPER_CACHE`),
    ) as string,
  });
  expect(readdirSync(folder).filter((name) => !name.endsWith('.lock'))).toEqual([]);
});

it('adds the tools of the tests once', async () => {
  programs.add('python3', pythonScript('3.12.1'));
  programs.add('uv', UV);
  const environment = await open();
  await installDevTools(environment, options());
  await installDevTools(environment, options());
  expect(uvCalls().filter((call) => call.includes('requirements-dev.lock'))).toHaveLength(1);
});

it('takes TEMPER_PYTHON as it is, and says what it lacks', async () => {
  programs.add('mine', `console.log('missing:');`);
  programs.add('bare', `console.log('missing: torch transformers');`);
  const path = (name: string) => join(programs.folder, 'bin', name);
  expect(await open({ TEMPER_PYTHON: path('mine') })).toEqual({ python: path('mine'), folder: null });
  await expect(open({ TEMPER_PYTHON: path('bare') })).rejects.toThrow(
    /must have all packages installed, but lacks torch transformers; install them or unset it/,
  );
  await expect(open({ TEMPER_PYTHON: path('none') })).rejects.toThrow(/cannot be run; correct or unset it/);
  // It lacks whatever it is asked for.
  programs.add('empty', `console.log('missing:', ...JSON.parse(/\\[".*"\\]/.exec(args[1])[0]));`);
  const tools = installDevTools({ python: path('empty'), folder: null }, options());
  await expect(tools).rejects.toThrow('but lacks pytest data_model;');
});

it('says what uv says: how many packages, and which one it downloads', () => {
  const describe = describePackages('installing');
  expect(describe('Resolved 29 packages in 546ms')).toBe('installing, 29 in all');
  expect(describe('Downloading torch (505.4MiB)')).toBe('installing, 29 in all, downloading torch, 505.4MiB');
  expect(describe(' Downloaded torch')).toBe('installing, 29 in all');
  expect(describe('Prepared 29 packages in 3s')).toBe('installing, 29 in all, writing them to disk');
});

it('refuses Macs for which PyTorch has no packages', () => {
  const on = (platform: 'linux' | 'darwin', arch: 'arm64' | 'x64', release: string) => () =>
    requirePlatform({ platform, arch }, release);
  for (const check of [on('linux', 'x64', '6.1.0'), on('darwin', 'arm64', '23.0.0')]) expect(check).not.toThrow();
  expect(on('darwin', 'arm64', '22.6.0')).toThrow('needs macOS 14 or later on Apple silicon, and a Node for arm64;');
  expect(on('darwin', 'x64', '24.1.0')).toThrow('this is Darwin 24.1.0 on x64; use another machine, or set');
});
