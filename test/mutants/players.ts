/** Plays test files in a copy of the tree, and says whether they noticed that it is broken. */
import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

import { COMPILED_VARIABLE } from '../compiled.ts';
import { projectOf } from '../run/projects.ts';
import { TIER_VARIABLE, type Tier } from '../run/tier.ts';

/** Test files that one process plays. */
export interface Batch {
  /** A Vitest project, or `pytest`. */
  readonly player: string;
  readonly tier: Tier;
  readonly files: readonly string[];
  readonly title?: string | undefined;
}

/** Time limits of one test, and of one file. */
interface Limits {
  readonly testMs: number;
  readonly fileMs: number;
}

/** A mutant may let a test hang. */
const BROKEN: Limits = { testMs: 120_000, fileMs: 300_000 };
/** Unbroken tests may take what a busy machine needs. */
export const UNBROKEN: Limits = { testMs: 900_000, fileMs: 900_000 };

export interface Played {
  /** `late`: a test did not end. `broken`: not one test failed, but they could not be run. */
  readonly verdict: 'passed' | 'failed' | 'late' | 'broken';
  readonly output: string;
}

const PYTEST = ['-x', '-q', '-p', 'no:cacheprovider'];
const VITEST = ['node_modules/vitest/vitest.mjs', 'run', '--reporter', 'json', '--bail', '1'];

export function playerOf(test: string): string {
  return test.endsWith('.py') ? 'pytest' : projectOf(test);
}

export class Players {
  readonly env: NodeJS.ProcessEnv;
  readonly #python: string;
  readonly #playing = new Set<ChildProcess>();
  /** Processes by their copy of the tree. */
  readonly #warm = new Map<string, WarmPytest>();

  constructor(python: string, tools: NodeJS.ProcessEnv) {
    this.#python = python;
    // Compiled Python is told apart by its second and its size: a mutant may have both in common with the original.
    this.env = { ...process.env, ...tools, PYTHONDONTWRITEBYTECODE: '1', NO_COLOR: '1' };
    // Of a suite around this one: stacks must run what is broken.
    delete this.env[COMPILED_VARIABLE];
  }

  async play(lane: string, batch: Batch, limits = BROKEN): Promise<Played> {
    const { code, output } = await (batch.player === 'pytest'
      ? this.#playPytest(lane, batch, limits)
      : this.#playVitest(lane, batch, limits));
    if (code === 0) return { verdict: 'passed', output };
    if (code === null || hasTimedOut(output, limits)) return { verdict: 'late', output };
    const hasFailed = batch.player === 'pytest' ? code === 1 : /"numFailedTests":[1-9]/.test(output);
    return { verdict: hasFailed ? 'failed' : 'broken', output };
  }

  stop(): void {
    for (const child of this.#playing) endGroup(child);
    for (const { child } of this.#warm.values()) endGroup(child);
  }

  async #playVitest(lane: string, { player, tier, files, title }: Batch, { testMs, fileMs }: Limits) {
    const timeouts = ['--testTimeout', `${testMs}`, '--hookTimeout', `${testMs}`];
    const titled = title === undefined ? [] : ['-t', title];
    const args = [...VITEST, '--project', player, ...timeouts, ...titled, ...files];
    const env = { ...this.env, [TIER_VARIABLE]: tier };
    // A group of its own, so that what a test has started ends with it.
    const child = spawn(process.execPath, args, { cwd: lane, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.#playing.add(child);
    const printed: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => printed.push(chunk));
    const closed = once(child, 'close') as Promise<[number | null]>;
    const timer = setTimeout(() => endGroup(child), files.length * fileMs);
    child.once('exit', () => endGroup(child));
    const [code] = await closed;
    clearTimeout(timer);
    this.#playing.delete(child);
    return { code, output: Buffer.concat(printed).toString('utf8') };
  }

  async #playPytest(lane: string, { files }: Batch, { fileMs }: Limits) {
    const warm = this.#warm.get(lane) ?? new WarmPytest(this.#python, this.env);
    this.#warm.set(lane, warm);
    const [cwd, output] = [join(lane, 'gpu-worker'), `${lane}.log`];
    const args = [...PYTEST, ...files.map((test) => relative('gpu-worker', test))];
    const timer = setTimeout(() => endGroup(warm.child), files.length * fileMs);
    const code = await warm.play({ cwd, output, arguments: args });
    clearTimeout(timer);
    if (code === null) this.#warm.delete(lane);
    return { code, output: await readFile(output, 'utf8') };
  }
}

/** See warm_pytest.py. */
class WarmPytest {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #answers: AsyncIterator<string>;

  constructor(python: string, env: NodeJS.ProcessEnv) {
    const program = join(import.meta.dirname, 'warm_pytest.py');
    this.child = spawn(python, [program], { env, stdio: ['pipe', 'pipe', 'inherit'], detached: true });
    this.#answers = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  /** The exit code; null if it was ended. */
  async play(request: { cwd: string; output: string; arguments: readonly string[] }): Promise<number | null> {
    this.child.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    return done === true ? null : Number(value);
  }
}

/** Vitest's report tells how long a test took, not why it has failed. */
function hasTimedOut(output: string, { testMs }: Limits): boolean {
  return [...output.matchAll(/"duration":(\d+)/g)].some(([, ms]) => Number(ms) >= testMs);
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
