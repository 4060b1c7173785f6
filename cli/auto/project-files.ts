/** The folder as a project: its configuration, and a package if no folder above it is one. Existing files are kept. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Store } from '../../store/store.ts';
import { loadConfig, type TemperConfig } from '../../workers/config/config.ts';
import { CONFIG_FILE } from '../../workers/project/folders.ts';
import { dependencyOnThis } from '../../workers/version.ts';
import { UsageError } from '../command-line/errors.ts';
import { packageNameOf, planIgnored, planManifest } from '../init/plan-init.ts';
import { stateOf, writeGenerated } from '../scenarios/write-files.ts';
import type { AutoContext } from './command.ts';
import { literal, quoted } from './literals.ts';

const TSCONFIG = fileURLToPath(new URL('../init/templates/tsconfig.project.json', import.meta.url));
const MCP_SDK = { '@modelcontextprotocol/sdk': '^1.25.0' };

const NUMBERS = ['steps', 'groups-per-step', 'group-size', 'max-tokens', 'learning-rate'] as const;

type RunFlags = Pick<AutoContext['flags'], 'base-model' | (typeof NUMBERS)[number]>;

/** Flags of `temper train` by their names, as `temporal.config.ts` has them. */
export type TrainFlags = TemperConfig['train'];

/** Names of the files that were written. Later flags reach the configuration as long as nobody edited it. */
export async function writeProject(
  { store, folder }: { readonly store: Store; readonly folder: string },
  train: TrainFlags,
  hasServer: boolean,
): Promise<string[]> {
  const written: string[] = [];
  await mkdir(folder, { recursive: true });
  if (findPackage(folder) === null)
    for (const [name, text] of packageFiles(folder, hasServer)) {
      if (existsSync(join(folder, name))) continue;
      await writeFile(join(folder, name), text);
      written.push(name);
    }
  const config = join(folder, CONFIG_FILE);
  const state = await stateOf(store, config);
  if (state === 'own') return written;
  const known = state === 'missing' ? {} : (await loadConfig(folder)).train;
  const text = configText({ ...known, ...train });
  if (state === 'generated' && readFileSync(config, 'utf8') === text) return written;
  await writeGenerated(store, config, new TextEncoder().encode(text));
  return [...written, CONFIG_FILE];
}

/** Refuses a folder in which the agent's imports would not be found, before anything is paid for. */
export function requireInstalled(folder: string): void {
  if (isInstalled(folder, 'temper-rl')) return;
  const remedy =
    findPackage(folder) === folder
      ? `run npm install in ${folder}`
      : `run npm install ${dependencyOnThis().replace('file:', '')}`;
  throw new UsageError(`temper-rl must be installed for ${folder}; ${remedy}, then the same command again`);
}

function isInstalled(folder: string, name: string): boolean {
  try {
    createRequire(join(folder, 'agent.ts')).resolve(name);
    return true;
  } catch (error) {
    // A package that has no entry for `require` is there all the same.
    return (error as NodeJS.ErrnoException).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED';
  }
}

/** The nearest folder upwards that has a package.json. */
function findPackage(folder: string): string | null {
  for (let place = folder; ; place = dirname(place)) {
    if (existsSync(join(place, 'package.json'))) return place;
    if (dirname(place) === place) return null;
  }
}

function packageFiles(folder: string, hasServer: boolean): [string, string][] {
  const name = packageNameOf(basename(folder));
  const template = {
    summary: '',
    baseModel: '',
    dependencies: hasServer ? MCP_SDK : {},
    scripts: { try: 'temper try', train: 'temper train' },
    extends: null,
  };
  const { manifest } = planManifest(null, { name, temper: dependencyOnThis(), template });
  return [
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['tsconfig.json', readFileSync(TSCONFIG, 'utf8')],
    ['.gitignore', planIgnored(null)],
  ];
}

/** Those that were given, for a command in `cwd`. */
export function trainFlags(flags: RunFlags, folder: string, cwd: string): TrainFlags {
  const baseModel = flags['base-model'];
  const model = baseModel === null ? {} : { 'base-model': pathFrom(baseModel, folder, cwd) };
  const numbers = NUMBERS.flatMap((name) => (flags[name] === null ? [] : [[name, flags[name]] as const]));
  return { ...model, ...Object.fromEntries(numbers) };
}

/** A text that is a path of `cwd`, such as `./model`, as a path of the folder; any other text as it is. */
export function pathFrom(text: string, folder: string, cwd: string): string {
  if (!/^\.{1,2}(\/|$)/.test(text)) return text;
  const path = relative(folder, resolve(cwd, text));
  return path.startsWith('.') ? path : `./${path}`;
}

function configText(train: TrainFlags): string {
  const lines = Object.entries(train).map(([name, value]) => {
    const key = name.includes('-') ? quoted(name) : name;
    return `    ${key}: ${literal(value)},\n`;
  });
  return `/** How this project trains, and where. */
import { defineConfig } from 'temper-rl/config';

export default defineConfig({
  // Flags of temper train; temper auto uses them too.
  train: {
${lines.join('')}  },
  // Store of the runs: a folder, or s3://BUCKET/PREFIX.
  // store: '.temper/store',
  // The engine that plays and trains on this machine.
  // engine: { device: 'auto', dtype: 'auto', threads: 2 },
});
`;
}
