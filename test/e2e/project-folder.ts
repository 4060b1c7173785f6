/** A folder of a user's with a `.temper` of its own: commands are run in it, and nothing of them is left when it closes. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../workers/process/processes.ts';
import { readStackFile } from '../../workers/local-stack/protocol/stack-file.ts';
import { until } from '../crash/project.ts';
import { startCommand, type Command, type Ended } from './command.ts';

/** Without a second GPU worker that stands by, which costs as much as the first one until it is of use. */
export const WITHOUT_STANDBY = 'export default { localStack: { standby: false } };\n';

/** Names of the processes of a project's local stack that are alive. */
export function aliveIn(project: string): string[] {
  const stack = readStackFile(join(project, '.temper', 'stack.json'));
  return stack === null
    ? []
    : [{ name: 'daemon', ...stack }, ...stack.children].filter(isAlive).map(({ name }) => name);
}

export class ProjectFolder {
  readonly folder: string;
  /** The folder that is removed at the end, with the project's own in it. */
  readonly #home: string;
  readonly #started: Command[] = [];
  readonly #env: NodeJS.ProcessEnv;

  constructor(folder: string, { home = folder, env = {} }: { home?: string; env?: NodeJS.ProcessEnv } = {}) {
    this.folder = folder;
    this.#home = home;
    this.#env = { ...process.env, ...env };
  }

  start(...line: string[]): Command {
    const command = startCommand(this.folder, line, this.#env);
    this.#started.push(command);
    return command;
  }

  run(...line: string[]): Promise<Ended> {
    return this.start(...line).ended;
  }

  path(...parts: string[]): string {
    return join(this.folder, '.temper', ...parts);
  }

  alive(): string[] {
    return aliveIn(this.folder);
  }

  /** One JSON object per line of a file of the run. */
  lines<T>(...parts: string[]): T[] {
    const text = readFileSync(this.path(...parts), 'utf8');
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as T);
  }

  /** Commands that were started here end. */
  async endCommands(): Promise<void> {
    for (const command of this.#started) command.interrupt();
    await Promise.all(this.#started.map(({ ended }) => ended));
  }

  async close(): Promise<void> {
    await this.endCommands();
    await until('the stack is gone', () => this.alive().length === 0, 30_000);
    rmSync(this.#home, { recursive: true, force: true });
  }
}
