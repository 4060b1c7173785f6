/** Runs a command of the test suite. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Of run_job.py where it was told to end what it runs. */
const ENDED = 124;

export interface Step {
  readonly title: string;
  readonly command: readonly [string, ...string[]];
  /** Words of its heading; the command itself if they are left out. */
  readonly shown?: readonly string[];
  readonly cwd?: string;
}

export interface Running {
  /** Output is seen at once, or in one piece at its end where others print meanwhile. */
  readonly showing?: 'at once' | 'at its end';
  /** The command is ended by SIGTERM after it, or by the signal. */
  readonly limitMinutes?: number;
  readonly signal?: AbortSignal;
}

export interface Ran {
  /** It exited with 0. */
  readonly succeeded: boolean;
  readonly output: string;
  readonly seconds: number;
}

/** Shows the output, too. */
export async function runStep(step: Step, env: NodeJS.ProcessEnv, running: Running = {}): Promise<Ran> {
  const { title, command, shown = command, cwd } = step;
  const { showing = 'at once', limitMinutes, signal } = running;
  const startedAt = performance.now();
  const heading = `\n── ${title}: ${shown.join(' ')}`;
  if (showing === 'at once') console.log(heading);
  const limit = limitMinutes === undefined ? {} : { timeout: limitMinutes * 60_000 };
  const child = spawn(command[0], command.slice(1), { stdio: ['inherit', 'pipe', 'pipe'], env, cwd, ...limit });
  const end = () => child.kill('SIGTERM');
  signal?.addEventListener('abort', end);
  if (signal?.aborted === true) end();
  const printed: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      printed.push(chunk);
      if (showing === 'at once') process.stdout.write(chunk);
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  signal?.removeEventListener('abort', end);
  const output = Buffer.concat(printed).toString('utf8');
  if (showing === 'at its end') process.stdout.write(`${heading}\n${output}`);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  console.log(`── ${title} ${describeExit(code)} after ${seconds} s`);
  return { succeeded: code === 0, output, seconds };
}

function describeExit(code: number | null): string {
  if (code === 0) return 'passed';
  return code === ENDED || code === null ? 'was ended' : `failed (exit ${code})`;
}
