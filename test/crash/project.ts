/** A project: its folder, its command line, and what its files say about the processes in it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readStackFile } from '../../workers/local-stack/protocol/stack-file.ts';
import { isAlive } from '../../workers/process/processes.ts';

/** Played by the stack that the files of the project `crash` share. */
export const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const TEMPER = fileURLToPath(new URL('../../cli/temper.js', import.meta.url));
const POLL_MS = 10;

export interface Ended {
  code: number | null;
  output: string;
}

export interface Running {
  child: ChildProcess;
  output: () => string;
  ended: Promise<Ended>;
}

interface ProjectOptions {
  /** Folder of a project that is there; else a new one is made. */
  folder?: string;
  /** Null: the project's own folder. */
  store?: string | null;
  /** For tests that kill the GPU worker; for all others it only costs the imports of a second one. */
  standby?: boolean;
}

export class Project {
  readonly folder: string;
  readonly state: string;
  /** The folder where processes with points find what they are aimed at (points/protocol.ts). */
  readonly points: string;
  /** While this file is there, the steps of a GPU worker with `short-of-memory/` have no room. */
  readonly shortOfMemory: string;
  /** The cache of models of the Hugging Face hub. */
  readonly hubCache: string;
  readonly #logs = new Map<string, { bytes: number; lines: Record<string, unknown>[] }>();

  constructor({ folder, store = null, standby = false }: ProjectOptions = {}) {
    this.folder = folder ?? mkdtempSync(join(tmpdir(), 'temper-crash-'));
    this.state = join(this.folder, '.temper');
    this.points = join(this.folder, 'points');
    this.shortOfMemory = join(this.folder, 'short-of-memory');
    this.hubCache = join(this.folder, 'huggingface');
    if (folder !== undefined) return;
    mkdirSync(this.state);
    const config = JSON.stringify({ store, localStack: { standby } });
    writeFileSync(join(this.folder, 'temporal.config.ts'), `export default ${config};\n`);
  }

  start(...args: string[]): Running {
    const child = spawn(process.execPath, [TEMPER, ...args], { cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += String(text)));
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, output }));
    return { child, output: () => output, ended };
  }

  run(...args: string[]): Promise<Ended> {
    return this.start(...args).ended;
  }

  /** The pid of a child of the stack by the beginning of its name, or of the daemon itself. */
  pid(name: string): number {
    const stack = readStackFile(join(this.state, 'stack.json'));
    if (stack === null) throw new Error('the stack has not written its file');
    if (name === 'daemon') return stack.pid;
    const mark = stack.children.find((child) => child.name.startsWith(name));
    if (mark === undefined) throw new Error(`the stack has no ${name}`);
    return mark.pid;
  }

  /** Names of the stack's processes that are alive. */
  alive(): string[] {
    const stack = readStackFile(join(this.state, 'stack.json'));
    return (stack?.children ?? []).filter(isAlive).map((child) => child.name);
  }

  path(...parts: string[]): string {
    return join(this.state, ...parts);
  }

  /** Lines are parsed once: some tests look again and again while a log grows. */
  log(name: string): Record<string, unknown>[] {
    const file = this.path('logs', `${name}.jsonl`);
    if (!existsSync(file)) return [];
    const [bytes, before] = [readFileSync(file), this.#logs.get(name)];
    const known = before !== undefined && before.bytes <= bytes.length ? before : { bytes: 0, lines: [] };
    const added = bytes.subarray(known.bytes);
    const whole = added.subarray(0, added.lastIndexOf('\n') + 1);
    const texts = whole.toString('utf8').split('\n').slice(0, -1);
    const lines = [...known.lines, ...texts.map((line) => JSON.parse(line) as Record<string, unknown>)];
    this.#logs.set(name, { bytes: known.bytes + whole.length, lines });
    return lines;
  }

  /** All the bytes of a run that stand under a hash: manifests, rollouts, verdicts, by their name in the run. */
  committed(run: string): Record<string, string> {
    const folder = this.path('store', 'runs', run, 'branches');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
      /\.(json|gz|safetensors)$/.test(file),
    );
    const kept = files.filter((file) => !file.endsWith('.times.json')).toSorted();
    return Object.fromEntries(kept.map((file) => [file, readFileSync(join(folder, file)).toString('base64')]));
  }

  async close(): Promise<void> {
    await until('the stack is gone', () => this.alive().length === 0, 30_000);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Polls fast: the points that tests wait for pass within milliseconds. */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  withinMs = 300_000,
  pollMs = POLL_MS,
): Promise<void> {
  for (const end = Date.now() + withinMs; !(await isTrue());) {
    if (Date.now() > end) throw new Error(`waited ${withinMs / 1000} s in vain until ${what}`);
    await sleep(pollMs);
  }
}
