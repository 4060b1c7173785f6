/** Why a person's file could not be loaded, in one line: what is wrong, in which line, and what to install. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { reachableFiles } from './agent-code.ts';

/** Message about a missing package, from `import` and from `require`. */
const MISSING_PACKAGE = /Cannot find (?:package|module) '((?:@[^/']+\/)?[^./'][^/']*)/;
const JAVASCRIPT = /\.[cm]?jsx?$/;

export function explainImport(cause: unknown, path: string): string {
  if (!(cause instanceof Error)) return String(cause);
  const place = cause instanceof SyntaxError ? placeOfSyntax(cause, path) : placeOfThrow(cause, path);
  const shown = place === null ? '' : ` (${place})`;
  return `${cause.name}: ${cause.message}${shown}${describeMissing(cause)}`;
}

function describeMissing({ message }: Error): string {
  const name = MISSING_PACKAGE.exec(message)?.[1];
  return name === undefined ? '' : `; install it with npm install ${name}`;
}

/** The line of the file itself, where it is known. */
function placeOfThrow({ stack = '' }: Error, path: string): string | null {
  const at = stack.split('\n').find((line) => line.includes(path) && /:\d+:\d+/.test(line));
  return at === undefined ? null : `line ${/:(\d+):\d+/.exec(at)?.[1]}`;
}

/** Before what Node says of a syntax error: the file, as a path or a URL, and the line. */
const OPENING = /^(\/.*|[a-z]:\\.*|file:\/\/.*):(\d+)$/im;

/** Position in a module, which the error itself lacks: Node's own check prints it. */
function placeOfSyntax({ stack = '' }: Error, path: string): string | null {
  const sources = [...reachableFiles(path)].filter((file) => JAVASCRIPT.test(file));
  const said = [() => stack, ...sources.map((file) => () => checkSyntax(file))];
  for (const say of said) {
    const [, named, line] = OPENING.exec(say()) ?? [];
    if (named === undefined) continue;
    const file = named.startsWith('file:') ? fileURLToPath(named) : named;
    return file === path ? `line ${line}` : `${file}:${line}`;
  }
  return null;
}

function checkSyntax(file: string): string {
  return spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' }).stderr;
}
