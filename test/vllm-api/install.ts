/** What `npm run test:vllm-api` needs, in the cache: vLLM's tests, and the packages that they import. */
import { createHash } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../../workers/command.ts';
import { cacheFolder } from '../../workers/folders.ts';
import { CommandFailed, installOnce } from '../../workers/install/install.ts';
import { findInterpreter } from '../../workers/install/python-interpreter.ts';
import { TABLE } from './table.ts';

const HERE = import.meta.dirname;
const SOURCE = `vllm-${TABLE.version}`;
const AROUND = ['__init__.py', 'entrypoints/__init__.py', 'entrypoints/conftest.py', 'entrypoints/serve/__init__.py'];
const WANTED = [...AROUND, ...TABLE.folders.map((folder) => `entrypoints/${folder}`)];
const FETCH = ['--no-deps', '--no-binary', ':all:', '--no-build-isolation'];

/** A folder with `tests/entrypoints`, as far as the table goes. */
export async function fetchTests(): Promise<string> {
  const lock = join(HERE, 'source.lock');
  const folder = folderOf('tests', lock, WANTED.join());
  await makeOnce(folder, 'fetching vLLM’s tests', async (partial) => {
    // pip asks a source archive for its metadata, and so builds some of it.
    const env = { ...process.env, PYTHONPATH: join(HERE, 'no-build') };
    await pip(['download', ...FETCH, '--require-hashes', '-r', lock, '--dest', partial], env);
    const members = WANTED.map((path) => `${SOURCE}/tests/${path}`);
    const archive = join(partial, `${SOURCE}.tar.gz`);
    await run('tar', ['-xzf', archive, '-C', partial, ...members]);
    rmSync(archive);
  });
  return join(folder, SOURCE);
}

/** Beside the packages of `python`, which it is left without. */
export async function installPackages(python: string): Promise<string> {
  const lock = join(HERE, 'requirements.lock');
  const folder = folderOf('packages', lock, python);
  await makeOnce(folder, 'installing the packages of vLLM’s tests', (partial) =>
    pip(['--python', python, 'install', '--no-deps', '--require-hashes', '--target', partial, '-r', lock], process.env),
  );
  return folder;
}

/** What is made of another lock, or otherwise, has another folder. */
function folderOf(what: string, lock: string, otherwise: string): string {
  const hash = createHash('sha256').update(readFileSync(lock)).update(otherwise).digest('hex');
  return join(cacheFolder(), 'vllm-api', `${what}-${hash.slice(0, 16)}`);
}

function makeOnce(folder: string, what: string, make: (partial: string) => Promise<void>): Promise<void> {
  const tellAndMake = (partial: string) => {
    console.log(what);
    return make(partial);
  };
  return installOnce(folder, tellAndMake, { onWait: () => console.log(`waiting for another process: ${what}`) });
}

async function pip(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const { executable } = await findInterpreter(process.env, true);
  await run(executable, ['-m', 'pip', '--disable-pip-version-check', '--quiet', ...args], env);
}

async function run(program: string, args: readonly string[], env = process.env): Promise<void> {
  const { code, output } = await runCommand(program, args, { env });
  if (code !== 0) throw new CommandFailed(`${program} ${args[0]}`, output);
}
