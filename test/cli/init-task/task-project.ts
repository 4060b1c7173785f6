/** A folder of a user's who has installed `temper-rl`. */
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeFile } from '../../compiled.ts';
import { sdkImports, write } from '../agents.ts';
import { runCli, type CliResult } from '../run-cli.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const ENTRIES = ['.', './config', './mcp'].map((name) => [name, './index.js']);
const NAMES = ['defineAgent', 'defineConfig', 'mcp', 'ruler', 'tool', 'toolLoop'] as const;

const FOLDER = 'add-two-numbers';
export const WORDS = [FOLDER, '--task', 'Add two numbers.', '--base-model', 'pocket'];

export interface TaskProject {
  readonly cwd: string;
  /** The folder that the command fills. */
  readonly folder: string;
  init(...words: string[]): Promise<CliResult>;
  read(name: string): Promise<string>;
  readJson<T>(name: string): Promise<T>;
  write(name: string, text: string): Promise<void>;
}

interface TaskProjectOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** The folder of another project, to begin with. */
  readonly made?: string;
  /** Processes load it; else this one's own copy is enough. */
  readonly hasPackage?: boolean;
}

export async function taskProject({
  env = {},
  made,
  hasPackage = false,
}: TaskProjectOptions = {}): Promise<TaskProject> {
  const cwd = temporaryFolder();
  await writeFile(join(cwd, 'package.json'), '{"type":"module"}');
  await addPackage(join(cwd, 'node_modules', 'temper-rl'), hasPackage);
  const folder = join(cwd, FOLDER);
  if (made !== undefined) await cp(made, folder, { recursive: true });
  const read = (name: string) => readFile(join(folder, name), 'utf8');
  return {
    cwd,
    folder,
    init: (...words) => runCli(cwd, ['init', ...words], { env }),
    read,
    readJson: async <T>(name: string) => JSON.parse(await read(name)) as T,
    write: (name, text) => writeFile(join(folder, name), text),
  };
}

async function addPackage(folder: string, isWhole: boolean): Promise<void> {
  await mkdir(dirname(folder));
  if (isWhole) return symlink(dirname(codeFile('package.json')), folder);
  await write(join(folder, 'package.json'), JSON.stringify({ type: 'module', exports: Object.fromEntries(ENTRIES) }));
  await write(join(folder, 'index.js'), `${sdkImports(...NAMES)}\nexport { ${NAMES.join(', ')} };\n`);
}
