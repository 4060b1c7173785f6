/** Runs a command of the test suite in the foreground. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Step {
  readonly title: string;
  readonly command: readonly [string, ...string[]];
  readonly cwd?: string;
}

/** True where it exited with 0. */
export async function runStep({ title, command, cwd }: Step, env: NodeJS.ProcessEnv): Promise<boolean> {
  console.log(`\n── ${title}: ${command.join(' ')}`);
  const [file, ...args] = command;
  const child = spawn(file, args, { stdio: 'inherit', env, cwd: cwd ?? process.cwd() });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) console.log(`── ${title} failed (exit ${code})`);
  return code === 0;
}
