/** Commands as a person types them: real processes, what they print on either stream, and how they end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const TEMPER = fileURLToPath(new URL('../../cli/temper.js', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Command {
  readonly stdout: () => string;
  readonly ended: Promise<Ended>;
  /** Ctrl-C: a terminal tells the whole process group. */
  interrupt(): void;
}

export function startCommand(cwd: string, line: readonly string[], env: NodeJS.ProcessEnv = process.env): Command {
  const [file = '', ...args] = line;
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout.setEncoding('utf8').on('data', (text: string) => out.push(text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => err.push(text));
  const ended = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    stdout: out.join(''),
    stderr: err.join(''),
  }));
  return {
    stdout: () => out.join(''),
    ended,
    interrupt: () => {
      if (child.exitCode === null && child.signalCode === null && child.pid !== undefined)
        process.kill(-child.pid, 'SIGINT');
    },
  };
}

export function runTemper(cwd: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Ended> {
  return startCommand(cwd, [process.execPath, TEMPER, ...args], env).ended;
}

export const linesOf = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '');
