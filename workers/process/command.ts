/** Runs one program to its end, line by line, and never leaves it behind. */
import { spawn, type ChildProcess, spawnSync } from 'node:child_process';
import type { Readable } from 'node:stream';
import { withoutDoorKeys } from '../../core/names/door-keys.ts';

export interface CommandResult {
  /** Exit code; null if a signal or a time-out ended it, or it could not be started. */
  readonly code: number | null;
  readonly output: string;
}

export interface CommandOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onLine?: ((line: string) => void) | undefined;
  /** What the program reads on stdin. */
  readonly input?: string;
}

const KEPT_LINES = 2000;
/** A line without an end is cut: what a child writes must not fill its parent's memory. */
const LONGEST_LINE = 65_536;

/** Never rejects: a program that is not there ends with code null and the reason as output. */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const lines: string[] = [];
  const [file, fileArgs] = leashed(command, args);
  const child = spawn(file, fileArgs, {
    env: withoutDoorKeys(options.env ?? process.env),
    cwd: options.cwd,
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    timeout: options.timeoutMs,
    signal: options.signal,
    killSignal: 'SIGKILL',
  });
  // A program that ends without reading all of it says why in its output.
  child.stdin?.on('error', () => undefined).end(options.input);
  collectLines(child, (line) => {
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
    options.onLine?.(line);
  });
  const code = await new Promise<number | null>((resolve) => {
    whenEnded(child, (exit, exitCode) => {
      if (child.pid === undefined) lines.push(exit);
      resolve(exitCode);
    });
  });
  return { code, output: lines.join('\n') };
}

/** Both outputs of a child, as lines. */
export function collectLines(child: ChildProcess, onLine: (line: string) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) splitLines(stream, onLine);
  }
}

/** A stream's text, line by line; the last one needs no end. */
export function splitLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text: string) => {
    // A carriage return at the end may be half of a line's end.
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
    if (rest.length <= LONGEST_LINE) return;
    onLine(rest);
    rest = '';
  });
  const end = (): void => {
    if (rest !== '') onLine(rest.replace(/\r$/, ''));
    rest = '';
  };
  // A stream that is let go of has no end. Its process ends with its last stream, and is to hear of it afterwards.
  stream.on('end', end).prependListener('close', end);
}

/** What the programs of a pipeline still write is read for so long after its end. */
const LAST_OUTPUT_MS = 100;

/**
 * Calls `onEnd` once: with the exit code or the signal, also in words, or with why the program could not be started. A
 * process that the child started may hold its output for as long as it lives: the output is let go of.
 */
export function whenEnded(child: ChildProcess, onEnd: (exit: string, code: number | null) => void): void {
  child.on('error', (error) => {
    // One that was aborted has yet to end.
    if (child.pid === undefined) onEnd(error.message, null);
  });
  if (child.pid === undefined) return;
  const letGo = (): void => {
    for (const stream of child.stdio) stream?.destroy();
  };
  // After the next look at the pipes, which reads all that the child itself has written.
  child.on('exit', () => void setTimeout(() => setImmediate(letGo), LAST_OUTPUT_MS).unref());
  // oxlint-disable-next-line temper/child-exit -- after its exit, nobody holds its output
  child.on('close', (code, signal) => onEnd(signal ?? `exit code ${code}`, code));
}

let available: boolean | null = null;

/** Linux alone can have the kernel end a child with its parent, whatever ended the parent; elsewhere stdin and `stack.json` do. */
function canTie(): boolean {
  available ??=
    process.platform === 'linux' &&
    spawnSync('setpriv', ['--pdeathsig', 'KILL', 'true'], { stdio: 'ignore', timeout: 5000 }).status === 0;
  return available;
}

/** The same command line, ended by SIGKILL when the process that starts it dies. The pid stays the program's own. */
export function leashed(command: string, args: readonly string[]): [string, string[]] {
  return canTie() ? ['setpriv', ['--pdeathsig', 'KILL', '--', command, ...args]] : [command, [...args]];
}
