/** Python packages beside those of a Python that is left as it is, in the cache, by a lock file. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../../workers/process/command.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { CommandFailed, installOnce } from '../../workers/install/install.ts';
import { findInterpreter } from '../../workers/install/python-interpreter.ts';

export interface Packages {
  /** The folder of the cache that they go to. */
  readonly cache: string;
  readonly lock: string;
  /** Said to who waits. */
  readonly what: string;
}

/** The folder that they are imported from. */
export async function installPackages(python: string, { cache, lock, what }: Packages): Promise<string> {
  const folder = cachedFolder(join(cache, 'packages'), lock, python);
  await makeOnce(folder, what, (partial) =>
    pip(['--python', python, 'install', '--no-deps', '--require-hashes', '--target', partial, '-r', lock]),
  );
  return folder;
}

/** Another lock, or another way of making it, gives another folder. */
export function cachedFolder(what: string, lock: string, otherwise: string): string {
  const hash = createHash('sha256').update(readFileSync(lock)).update(otherwise).digest('hex');
  return join(cacheFolder(), `${what}-${hash.slice(0, 16)}`);
}

export function makeOnce(folder: string, what: string, make: (partial: string) => Promise<void>): Promise<void> {
  const tellAndMake = (partial: string) => {
    console.log(what);
    return make(partial);
  };
  return installOnce(folder, tellAndMake, { onWait: () => console.log(`waiting for another process: ${what}`) });
}

export async function pip(args: readonly string[], env = process.env): Promise<void> {
  const { executable } = await findInterpreter(process.env, true);
  const all = ['-m', 'pip', '--disable-pip-version-check', '--quiet', ...args];
  const { code, output } = await runCommand(executable, all, { env });
  if (code !== 0) throw new CommandFailed(`pip ${args[0]}`, output);
}
