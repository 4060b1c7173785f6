/** Why a person's file could not be loaded, in one line: what is wrong, in which line, and what to install. */
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BuildFailure } from 'esbuild';

import { reachableFiles } from './agent-code.ts';

/** Message about a missing package, from `import` and from `require`. */
const MISSING_PACKAGE = /Cannot find (?:package|module) '((?:@[^/']+\/)?[^./'][^/']*)/;

export async function explainImport(cause: unknown, path: string): Promise<string> {
  if (!(cause instanceof Error)) return String(cause);
  const place = cause instanceof SyntaxError ? await placeOfSyntax(cause, path) : placeOfThrow(cause, path);
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

/** Position in a module, which the error itself lacks: esbuild says it. */
async function placeOfSyntax({ stack = '' }: Error, path: string): Promise<string | null> {
  const [, named, line] = OPENING.exec(stack) ?? [];
  if (named !== undefined) return describePlace(named.startsWith('file:') ? fileURLToPath(named) : named, line, path);
  const failure = await reachableFiles(path).then(
    () => null,
    (error: Partial<BuildFailure>) => error,
  );
  const at = failure?.errors?.[0]?.location;
  return at ? describePlace(resolve(dirname(path), at.file), at.line, path) : null;
}

function describePlace(file: string, line: string | number | undefined, path: string): string {
  return file === path ? `line ${line}` : `${file}:${line}`;
}
