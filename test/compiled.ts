/**
 * The code that stacks of tests run: the tree, compiled once for a whole suite, because tsx costs half a second of each
 * command and more than a second of each worker. A test that is run by itself uses the sources.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DefaultLogger } from '@temporalio/worker';
import { BUNDLE_NAMES, bundlePage } from '../browser/bundle.ts';
import { nodeFlags } from '../workers/process/module-path.ts';
import { cacheFolder } from '../workers/project/folders.ts';
import { workflowBundle } from '../workers/worker/workflow-bundle.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Names the folder of the compiled tree. */
export const COMPILED_VARIABLE = 'TEMPER_TEST_COMPILED';
const COMPILED = [
  'core',
  'store',
  'play',
  'outbound',
  'views',
  'sdk',
  'workflows',
  'activities',
  'workers',
  'operations',
  'cli',
];
/** Also has what the processes of stacks run of the tests, and what these import. */
const ALSO_COMPILED = [
  'examples',
  'test/crash/agents',
  'test/crash/points',
  'test/hold-stack.ts',
  'test/workflows/deploy-worker.ts',
  'test/workflows/user-worker.ts',
  'test/workflows/workflow-player.ts',
];
const TEMPLATES = 'cli/init/templates';
const LINKED = ['node_modules', 'gpu-worker', 'README.md'];

/** A TypeScript file of the tree, by its path in it, as processes of stacks load it. */
export function codeFile(path: string): string {
  const folder = process.env[COMPILED_VARIABLE];
  return folder === undefined ? join(ROOT, path) : join(folder, path.replace(/\.ts$/, '.js'));
}

/** A command that runs it. */
export function codeCommand(path: string): string[] {
  const flags = process.env[COMPILED_VARIABLE] === undefined ? nodeFlags() : [];
  return [process.execPath, ...flags, codeFile(path)];
}

/** Compiles the tree for all stacks from now on, unless a suite around this one has done so. Resolves to what is to be removed. */
export async function useCompiledCode(): Promise<string[]> {
  if (process.env[COMPILED_VARIABLE] !== undefined) return [];
  const folder = mkdtempSync(join(tmpdir(), 'temper-compiled-'));
  compile(folder);
  copyOthers(folder);
  await addBundles(folder);
  process.env[COMPILED_VARIABLE] = folder;
  return [folder];
}

function compile(folder: string): void {
  const config = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      noCheck: true,
      rootDir: ROOT,
      outDir: folder,
      typeRoots: [join(ROOT, 'node_modules/@types')],
    },
    include: [...COMPILED, ...ALSO_COMPILED].map((path) => join(ROOT, path)),
    // `temper init` copies them as they are.
    exclude: [join(ROOT, TEMPLATES)],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '--project', folder], {
    stdio: 'inherit',
  });
}

/** Programs, data of examples, and what is not compiled. */
function copyOthers(folder: string): void {
  for (const path of [...COMPILED, ...ALSO_COMPILED]) {
    const isOther = (file: string) => !file.endsWith('.ts') || file.includes(TEMPLATES);
    cpSync(join(ROOT, path), join(folder, path), { recursive: true, filter: isOther });
  }
  for (const name of LINKED) symlinkSync(join(ROOT, name), join(folder, name));
  const manifest = readFileSync(join(ROOT, 'package.json'), 'utf8');
  writeFileSync(join(folder, 'package.json'), manifest.replaceAll(/(?<=: "\.\/.*)\.ts"/g, '.js"'));
}

/** They would be made by each process that needs them. */
async function addBundles(folder: string): Promise<void> {
  cpSync(await workflowBundle(cacheFolder(), new DefaultLogger('WARN')), join(folder, 'workflows/bundle.js'));
  mkdirSync(join(folder, 'browser'));
  for (const name of BUNDLE_NAMES) {
    const { js, css } = await bundlePage(name);
    writeFileSync(join(folder, 'browser', `${name}.js`), js);
    writeFileSync(join(folder, 'browser', `${name}.css`), css);
  }
}
