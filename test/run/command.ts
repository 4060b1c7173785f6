/** Runs a command of the test suite. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Step {
  readonly title: string;
  readonly command: readonly [string, ...string[]];
  /** Words of its heading; the command itself if they are left out. */
  readonly shown?: readonly string[];
  readonly cwd?: string;
}

/** Output is seen at once, or in one piece at its end where others print meanwhile. */
export type Showing = 'at once' | 'at its end';

export interface Ran {
  /** It exited with 0. */
  readonly succeeded: boolean;
  readonly output: string;
  readonly seconds: number;
}

/** Shows the output, too. */
export async function runStep(step: Step, env: NodeJS.ProcessEnv, showing: Showing = 'at once'): Promise<Ran> {
  const { title, command, shown = command, cwd = process.cwd() } = step;
  const [file, ...args] = command;
  const startedAt = Date.now();
  const heading = `\n── ${title}: ${shown.join(' ')}`;
  if (showing === 'at once') console.log(heading);
  const child = spawn(file, args, { stdio: ['inherit', 'pipe', 'pipe'], env, cwd });
  const printed: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      printed.push(chunk);
      if (showing === 'at once') process.stdout.write(chunk);
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  const output = Buffer.concat(printed).toString('utf8');
  if (showing === 'at its end') process.stdout.write(`${heading}\n${output}`);
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  console.log(`── ${title} ${code === 0 ? 'passed' : `failed (exit ${code})`} after ${seconds} s`);
  return { succeeded: code === 0, output, seconds };
}
