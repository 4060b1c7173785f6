/** The agent as code: loaded, and hashed with all files of its own that it imports. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import type { Plugin } from 'esbuild';
import { badConfig } from '../../core/contract/failures.ts';
import { patchGlobalFetch } from '../../play/transports/ambient.ts';
import { importDefault } from './import-file.ts';

// Whoever wrote the agent's code waits for its hash.
// oxlint-disable temper/linear-regex
const COMMAND = /\bcommand\s*\(\s*\[([^\]]*)\]/g;
const MCP_ARGS = /\bmcp\s*\(\s*\{[^}]*?\bargs\s*:\s*\[([^\]]*)\]/g;
const FILES = /\bfiles\s*:\s*\[([^\]]*)\]/g;
// oxlint-enable temper/linear-regex
const TEXT = /(["'`])([^"'`\n]+)\1/g;
const NO_CODE = /^(\.|__pycache__$|node_modules$|venv$)|\.pyc$/;
const CODE = /\.(?:[cm]?[jt]sx?|json)$/;

/** File names of a folder's agent. */
const AGENT_FILES = ['ts', 'mts', 'cts', 'js', 'mjs', 'cjs'].map((ending) => `agent.${ending}`);

/**
 * sha256 over the agent's file and what it imports of its own, however deep, and over the files of its programs, by their
 * paths relative to the agent.
 */
export async function agentCodeSha256(file: string): Promise<string> {
  const entry = findAgentFile(file);
  const root = dirname(entry);
  const hash = createHash('sha256');
  const sources = await reachableFiles(entry);
  for (const path of [...new Set([...sources, ...programFiles(sources, root)])].toSorted()) {
    const name = relative(root, path).split(sep).join('/');
    const content = createHash('sha256').update(readFileSync(path)).digest('hex');
    hash.update(`${name}\0${content}\n`);
  }
  return hash.digest('hex');
}

/**
 * The file and what it imports, however deep, as the loader finds it: by relative paths, by `paths` of tsconfig.json and by
 * `imports` of package.json. Packages are none of its own. Throws esbuild's BuildFailure for code that cannot be read.
 */
export async function reachableFiles(entry: string): Promise<string[]> {
  // A command that loads no agent saves it.
  const { build } = await import('esbuild');
  // Names are relative to the folder without its links.
  const root = realpathSync(dirname(entry));
  const { metafile } = await build({
    entryPoints: [entry],
    absWorkingDir: root,
    outdir: root,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    preserveSymlinks: true,
    ignoreAnnotations: true,
    plugins: [READ_CODE_ALONE],
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  return Object.keys(metafile.inputs).map((name) => resolve(root, name));
}

/** Other files are part of the agent, too, whatever is in them. */
const READ_CODE_ALONE: Plugin = {
  name: 'read-code-alone',
  setup: (build) =>
    build.onLoad({ filter: /./ }, ({ path }) => (CODE.test(path) ? undefined : { contents: '', loader: 'js' })),
};

/** Files that `command([…])`, its `files` and the `args` of `mcp({ … })` name literally, in the agent's file or in its imports. */
function* programFiles(sources: Iterable<string>, root: string): Generator<string> {
  for (const source of sources) {
    const text = source.endsWith('.json') ? '' : readFileSync(source, 'utf8');
    const commands = namesIn(text, COMMAND);
    yield* commands.map((name) => resolve(root, name)).filter(isFile);
    yield* namesIn(text, MCP_ARGS)
      .map((name) => resolve(root, name))
      .filter(isFile);
    if (commands.length > 0) for (const name of namesIn(text, FILES)) yield* filesOf(resolve(root, name));
  }
}

/** An absolute path is the machine's: another one has it elsewhere. */
function namesIn(text: string, lists: RegExp): string[] {
  const names = [...text.matchAll(lists)].flatMap(([, list = '']) =>
    [...list.matchAll(TEXT)].map(([, , name = '']) => name),
  );
  return names.filter((name) => !isAbsolute(name));
}

/** A file, or those in a folder. Without what a program writes beside its code. */
function* filesOf(path: string): Generator<string> {
  if (isFile(path)) yield path;
  else if (existsSync(path))
    for (const name of readdirSync(path)) if (!NO_CODE.test(name)) yield* filesOf(join(path, name));
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** The file itself, or the one agent of a folder. */
export function findAgentFile(named: string): string {
  const path = resolve(named);
  if (isFile(path)) return path;
  if (!existsSync(path)) {
    throw badConfig(`the agent file ${path} does not exist; name the file that exports defineAgent({ … }) by default`);
  }
  const found = AGENT_FILES.filter((name) => isFile(join(path, name)));
  if (found.length === 1) return join(path, found[0]!);
  const rule = 'a folder must have one agent.ts (or agent.mts, .cts, .js, .mjs, .cjs) to be an agent';
  throw badConfig(`${rule}, ${path} has ${found.length === 0 ? 'none' : found.join(' and ')}; name the file`);
}

/** The default export of an agent's file, whatever it is. */
export async function importAgentFile(file: string): Promise<unknown> {
  // Errors of an agent in TypeScript name its lines as they were written.
  process.setSourceMapsEnabled(true);
  patchGlobalFetch();
  return importDefault(findAgentFile(file));
}
