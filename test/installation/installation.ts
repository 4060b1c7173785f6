/** The package as a user has it: built, packed, and installed into a folder whose name needs quoting everywhere. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readStackFile } from '../../workers/local-stack/protocol/stack-file.ts';
import { cachedFolder, installPackages, makeOnce } from '../run/packages.ts';
import { openTools } from '../run/tools.ts';
import { ProjectFolder, startCommand, succeed, WITHOUT_STANDBY } from '../stack.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NAME = `it's "my" project #1 (100%)`;

const NPM_INSTALL = ['npm', 'install', '--no-audit', '--no-fund', '--prefer-offline'];

/** The program as npm links it into a project. */
export const TEMPER = 'node_modules/.bin/temper';

const SMALL_LINE = '--groups-per-step 2 --group-size 4 --eval-scenarios 4 --replacement-rounds 0';
export const SMALL = SMALL_LINE.split(' ');
/** A step of the run that `npm start` makes, which pages ask about. */
export const DEMO = [
  'train',
  'examples/tic-tac-toe/agent.ts',
  '--run',
  'demo',
  '--base-model',
  'pocket',
  '--steps',
  '1',
];

export interface Installation {
  readonly folder: string;
  /** Around it: removed with it. */
  readonly home: string;
  /** Variables that commands in it need besides the surroundings. */
  readonly env: Readonly<Record<string, string>>;
  /** Paths in the packed package. */
  readonly packed: readonly string[];
  readonly packedBytes: number;
}

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

/** With a cache of its own, which begins empty: Python and Temporal's CLI are found by their variables. */
export async function installPackage(variables: Readonly<Record<string, string>>): Promise<Installation> {
  const { python, temporalCli } = await openTools();
  const home = mkdtempSync(join(tmpdir(), 'temper-installation-'));
  const folder = join(home, NAME);
  mkdirSync(folder);
  const tools = { TEMPER_CACHE: join(home, 'cache'), TEMPER_PYTHON: python, TEMPER_TEMPORAL_CLI: temporalCli };
  const env = { ...tools, ...variables };
  await succeed(startCommand(ROOT, ['npm', 'run', 'build']).ended);
  const pack = ['npm', 'pack', './dist', '--json', '--pack-destination', home];
  const [packed] = JSON.parse(await succeed(startCommand(ROOT, pack).ended)) as [Packed];
  cpSync(fileURLToPath(new URL('project', import.meta.url)), folder, { recursive: true });
  writeFileSync(join(folder, 'temporal.config.ts'), WITHOUT_STANDBY);
  const project = new ProjectFolder(folder, { env });
  await linkPackages(folder);
  await succeed(project.run(...NPM_INSTALL, join(home, packed.filename)));
  return { folder, home, env, packed: packed.files.map(({ path }) => path), packedBytes: packed.size };
}

/**
 * The packages of others that npm would unpack, which takes a fifth of the project's processor time, are kept from one
 * suite to the next. What the package itself asks for is still npm's to find, to add and to remove.
 */
async function linkPackages(folder: string): Promise<void> {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const needed = Object.entries(dependencies).map(([name, version]) => `${name}@${version}`);
  const otherwise = [process.version, process.arch, ...needed].join(' ');
  const kept = cachedFolder('installation', join(folder, 'package-lock.json'), otherwise);
  await makeOnce(kept, 'installing packages for a project of a user', async (partial) => {
    for (const name of ['package.json', 'package-lock.json']) cpSync(join(folder, name), join(partial, name));
    await succeed(startCommand(partial, [...NPM_INSTALL, ...needed]).ended);
  });
  const [from, to] = [join(kept, 'node_modules'), join(folder, 'node_modules')];
  // Links, where both are on one disk.
  const linked = await startCommand(folder, ['cp', '-al', from, to]).ended;
  if (linked.code !== 0) cpSync(from, to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
}

/** The GPU worker of the local stack. */
export function engineOf(project: ProjectFolder): { engine: string; key: string } {
  const ports = readStackFile(project.path('stack.json'))!.ports!;
  const key = readFileSync(project.path('engine.key'), 'utf8').trim();
  return { engine: `http://127.0.0.1:${ports.engine}`, key };
}

/** Packages that `clients.py` and the programs of pages import. */
export function installClients(python: string): Promise<string> {
  const lock = fileURLToPath(new URL('project/scripted/requirements.txt', import.meta.url));
  return installPackages(python, { cache: 'clients', lock, what: 'installing clients for Python' });
}
