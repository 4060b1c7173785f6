/** The agent as code: loaded, and hashed with all relative files that it imports. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { TemperError } from '../../core/failures.ts';
import { patchGlobalFetch } from '../../play/transports/ambient.ts';
import { importDefault } from './import-file.ts';

/** Relative specifiers of `import … from`, `export … from`, `import '…'`, `import('…')` and `require('…')`. */
const RELATIVE_IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)(["'])(\.{1,2}\/[^"'\n]+)\1/g;
const COMMAND = /\bcommand\s*\(\s*\[([^\]]*)\]/g;
const MCP_ARGS = /\bmcp\s*\(\s*\{[^}]*?\bargs\s*:\s*\[([^\]]*)\]/g;
const FILES = /\bfiles\s*:\s*\[([^\]]*)\]/g;
const TEXT = /(["'`])([^"'`\n]+)\1/g;
const NO_CODE = /^(\.|__pycache__$|node_modules$|venv$)|\.pyc$/;
const ENDINGS = ['', '.ts', '.tsx', '.mts', '.cts', '.js', '.mjs', '.cjs', '.json', '/index.ts', '/index.js'];

/** File names of a folder's agent. */
const AGENT_FILES = ['ts', 'mts', 'cts', 'js', 'mjs', 'cjs'].map((ending) => `agent.${ending}`);

/**
 * sha256 over the agent's file and its relative imports, however deep, and over the files of its programs, by their
 * paths relative to the agent.
 */
export async function agentCodeSha256(file: string): Promise<string> {
  const entry = findAgentFile(file);
  const root = dirname(entry);
  const hash = createHash('sha256');
  const sources = reachableFiles(entry);
  for (const path of [...new Set([...sources, ...programFiles(sources, root)])].toSorted()) {
    const name = relative(root, path).split(sep).join('/');
    const content = createHash('sha256').update(readFileSync(path)).digest('hex');
    hash.update(`${name}\0${content}\n`);
  }
  return hash.digest('hex');
}

/** The file and its relative imports, however deep. */
export function reachableFiles(entry: string): Set<string> {
  const found = new Set([entry]);
  for (const file of found) {
    if (file.endsWith('.json')) continue;
    for (const [, , specifier = ''] of readFileSync(file, 'utf8').matchAll(RELATIVE_IMPORT)) {
      const target = resolveImport(dirname(file), specifier);
      if (target !== null) found.add(target);
    }
  }
  return found;
}

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

/** TypeScript's `./a.js` may mean `./a.ts`. Null for what is not there: loading the agent will say so. */
function resolveImport(folder: string, specifier: string): string | null {
  const path = resolve(folder, specifier);
  const asSource = path.replace(/\.([cm]?)js(x?)$/, '.$1ts$2');
  return [...ENDINGS.map((ending) => path + ending), asSource].find(isFile) ?? null;
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** The file itself, or the one agent of a folder. */
export function findAgentFile(named: string): string {
  const path = resolve(named);
  if (isFile(path)) return path;
  if (!existsSync(path)) {
    throw new TemperError(
      'BadConfig',
      `the agent file ${path} does not exist; name the file that exports defineAgent({ … }) by default`,
    );
  }
  const found = AGENT_FILES.filter((name) => isFile(join(path, name)));
  if (found.length === 1) return join(path, found[0]!);
  const rule = 'a folder must have one agent.ts (or agent.mts, .cts, .js, .mjs, .cjs) to be an agent';
  throw new TemperError(
    'BadConfig',
    `${rule}, ${path} has ${found.length === 0 ? 'none' : found.join(' and ')}; name the file`,
  );
}

/** The default export of an agent's file, whatever it is. */
export async function importAgentFile(file: string): Promise<unknown> {
  patchGlobalFetch();
  return importDefault(findAgentFile(file));
}
