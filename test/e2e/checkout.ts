/**
 * A checkout with a `.temper` of its own: everything is linked to the real one but `package.json`, which marks a project,
 * and the configuration where it has one of its own.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isAlive } from '../../workers/local-stack/processes.ts';
import { readStackFile } from '../../workers/local-stack/stack-file.ts';
import { until } from '../crash/project.ts';
import { startCommand, type Command, type Ended } from './command.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CONFIG = 'temporal.config.ts';
const NOT_LINKED = new Set(['.temper', '.git', 'package.json']);

/** Without a second GPU worker that stands by, which costs as much as the first one until it is of use. */
export const WITHOUT_STANDBY = 'export default { localStack: { standby: false } };\n';

interface CheckoutOptions {
  /** Added to what this process has. */
  env?: NodeJS.ProcessEnv;
  /** The text of `temporal.config.ts`; null: the checkout's. */
  config?: string | null;
}

/** Names of the processes of a project's local stack that are alive. */
export function aliveIn(project: string): string[] {
  const stack = readStackFile(join(project, '.temper', 'stack.json'));
  return stack === null ? [] : [{ name: 'leash', ...stack }, ...stack.children].filter(isAlive).map(({ name }) => name);
}

export class Checkout {
  readonly folder = mkdtempSync(join(tmpdir(), 'temper-checkout-'));
  readonly #started: Command[] = [];
  readonly #env: NodeJS.ProcessEnv;

  constructor({ env, config = null }: CheckoutOptions = {}) {
    this.#env = { ...process.env, ...env };
    for (const name of readdirSync(ROOT)) {
      const isOwn = config !== null && name === CONFIG;
      if (!NOT_LINKED.has(name) && !isOwn) symlinkSync(join(ROOT, name), join(this.folder, name));
    }
    if (config !== null) writeFileSync(join(this.folder, CONFIG), config);
    cpSync(join(ROOT, 'package.json'), join(this.folder, 'package.json'));
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

  async close(): Promise<void> {
    for (const command of this.#started) command.interrupt();
    await Promise.all(this.#started.map(({ ended }) => ended));
    await until('the stack is gone', () => this.alive().length === 0, 30_000);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
