/** Runs one program to its end, line by line, and never leaves it behind. */
import { spawn, type ChildProcess } from 'node:child_process';
import { splitLines } from './lines.ts';
import { leashed } from './leashed.ts';

export interface CommandResult {
  /** Exit code; null where a signal or a time-out ended it, or it could not be started. */
  readonly code: number | null;
  readonly output: string;
}

export interface CommandOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly onLine?: (line: string) => void;
}

const KEPT_LINES = 2000;

/** Never rejects: a program that is not there ends with code null and the reason as output. */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const lines: string[] = [];
  const [file, fileArgs] = leashed(command, args);
  const child = spawn(file, fileArgs, {
    env: options.env ?? process.env,
    cwd: options.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: options.timeoutMs,
    killSignal: 'SIGKILL',
    windowsHide: true,
  });
  const stop = () => child.kill('SIGKILL');
  options.signal?.addEventListener('abort', stop, { once: true });
  collectLines(child, (line) => {
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
    options.onLine?.(line);
  });
  const code = await ended(child, lines);
  options.signal?.removeEventListener('abort', stop);
  return { code, output: lines.join('\n') };
}

/** Both outputs of a child, as lines. */
export function collectLines(child: ChildProcess, onLine: (line: string) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) splitLines(stream, onLine);
  }
}

function ended(child: ChildProcess, lines: string[]): Promise<number | null> {
  return new Promise((resolve) => {
    child.on('error', (error) => {
      lines.push(error.message);
      resolve(null);
    });
    child.on('close', (code) => resolve(code));
  });
}
