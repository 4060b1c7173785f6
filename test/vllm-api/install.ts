/** Needs of `npm run test:vllm-api`, in the cache: vLLM's tests, and the packages that they import. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../../workers/process/command.ts';
import { CommandFailed } from '../../workers/install/install.ts';
import { cachedFolder, installPackages, makeOnce, pip } from '../run/packages.ts';
import { TABLE } from './table.ts';

const HERE = import.meta.dirname;
const CACHE = 'vllm-api';
const SOURCE = `vllm-${TABLE.version}`;
const AROUND = ['__init__.py', 'entrypoints/__init__.py', 'entrypoints/conftest.py', 'entrypoints/serve/__init__.py'];
const WANTED = [...AROUND, ...TABLE.folders.map((folder) => `entrypoints/${folder}`)];
const FETCH = ['--no-deps', '--no-binary', ':all:', '--no-build-isolation'];

/** A folder with `tests/entrypoints`, as far as the table goes. */
export async function fetchTests(): Promise<string> {
  const lock = join(HERE, 'source.lock');
  const folder = cachedFolder(join(CACHE, 'tests'), lock, WANTED.join());
  await makeOnce(folder, 'fetching vLLM’s tests', async (partial) => {
    // pip asks a source archive for its metadata, and so builds some of it.
    const env = { ...process.env, PYTHONPATH: join(HERE, 'no-build') };
    await pip(['download', ...FETCH, '--require-hashes', '-r', lock, '--dest', partial], env);
    const members = WANTED.map((path) => `${SOURCE}/tests/${path}`);
    const archive = join(partial, `${SOURCE}.tar.gz`);
    const { code, output } = await runCommand('tar', ['-xzf', archive, '-C', partial, ...members]);
    if (code !== 0) throw new CommandFailed('tar', output);
    rmSync(archive);
  });
  return join(folder, SOURCE);
}

/** Beside the packages of `python`, which it is left without. */
export function installTestPackages(python: string): Promise<string> {
  const lock = join(HERE, 'requirements.lock');
  return installPackages(python, { cache: CACHE, lock, what: 'installing the packages of vLLM’s tests' });
}
