/** One process of a supervisor's: its output goes to the log, and its last lines are kept for when it dies. */
import { spawn, type ChildProcess } from 'node:child_process';
import { collectLines, whenEnded, leashed } from './command.ts';
import type { ChildLog } from './child-log.ts';
import type { Readiness } from './readiness.ts';

export interface ChildSpec {
  readonly name: string;
  /** File of an agent's worker. */
  readonly agentFile: string | null;
  readonly command: readonly string[];
  /** Standby of the same program: it becomes the child by a line on stdin. Null if a start is quick. */
  readonly standbyCommand: readonly string[] | null;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly ready: Readiness;
  /** How long SIGTERM is given before SIGKILL. */
  readonly stopMs: number;
}

export interface StartedChild {
  readonly child: ChildProcess;
  readonly lastLines: readonly string[];
}

const SHOWN_LINES = 15;

export function startChild(
  { env, cwd, ready }: ChildSpec,
  [program = '', ...rest]: readonly string[],
  log: ChildLog,
): StartedChild {
  const [file, args] = leashed(program, rest);
  // stdin stays open for the lifetime of this process: workers end when it closes.
  const told = ready.kind === 'told' ? (['pipe'] as const) : [];
  const child = spawn(file, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe', ...told] });
  child.stdin?.on('error', () => undefined);
  const lastLines: string[] = [];
  const keep = (line: string) => {
    lastLines.push(log.write(line));
    if (lastLines.length > SHOWN_LINES) lastLines.shift();
  };
  collectLines(child, keep);
  child.on('error', (error) => keep(error.message));
  return { child, lastLines };
}

export async function endChild(child: ChildProcess, stopMs: number): Promise<void> {
  const ended = new Promise<void>((resolve) => whenEnded(child, () => resolve()));
  child.kill('SIGTERM');
  const kill = setTimeout(() => child.kill('SIGKILL'), stopMs);
  await ended;
  clearTimeout(kill);
}
