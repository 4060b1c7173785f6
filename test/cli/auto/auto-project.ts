/** A folder of a user's who has installed this tree as `temper-rl`. */
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCli, type CliResult } from '../run-cli.ts';

const TREE = fileURLToPath(new URL('../../../', import.meta.url));

export const TASK = 'Add two numbers.';
export const FOLDER = 'add-two-numbers';

export interface AutoProject {
  readonly cwd: string;
  /** The folder that `temper auto` makes. */
  readonly folder: string;
  auto(...words: string[]): Promise<CliResult>;
  read(name: string): Promise<string>;
  readJson<T>(name: string): Promise<T>;
  write(name: string, text: string): Promise<void>;
}

const folders: string[] = [];

/** Removes the folders of all projects; for `afterAll`. */
export async function removeProjects(): Promise<void> {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
}

/** `made`: the folder of another project, to begin with. */
export async function autoProject(env: NodeJS.ProcessEnv = {}, made?: string): Promise<AutoProject> {
  const cwd = await mkdtemp(join(tmpdir(), 'temper-auto-'));
  folders.push(cwd);
  await writeFile(join(cwd, 'package.json'), '{"type":"module"}');
  await mkdir(join(cwd, 'node_modules'));
  await symlink(TREE, join(cwd, 'node_modules', 'temper-rl'));
  const folder = join(cwd, FOLDER);
  if (made !== undefined) await cp(made, folder, { recursive: true });
  const read = (name: string) => readFile(join(folder, name), 'utf8');
  return {
    cwd,
    folder,
    auto: (...words) => runCli(cwd, ['auto', ...words], { env }),
    read,
    readJson: async <T>(name: string) => JSON.parse(await read(name)) as T,
    write: (name, text) => writeFile(join(folder, name), text),
  };
}
