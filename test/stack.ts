/** A project with a local stack: its folder, commands in it, and what its files and logs say about the processes there. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { LocalStack } from '../workers/local-stack/client.ts';
import { readStackFile, type StackFile } from '../workers/local-stack/protocol/stack-file.ts';
import { leashed } from '../workers/process/command.ts';
import { isAlive } from '../workers/process/processes.ts';
import { codeCommand, codeFile } from './compiled.ts';
import type { Aim, Hit, ProcessName } from './crash/points/protocol.ts';
import type { HoldOptions } from './hold-stack.ts';
import { until } from './until.ts';
import { isPosition, untimedPosition } from './untimed.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CONFIG_FILE = 'temporal.config.ts';
const GONE_WITHIN_MS = 120_000;

/** A second GPU worker that stands by costs as much as the first one until it is of use. */
const NO_STANDBY = { localStack: { standby: false } };
export const WITHOUT_STANDBY = `export default ${JSON.stringify(NO_STANDBY)};\n`;

/** The agent that most stacks play. */
export const ticTacToe = (): string => codeFile('examples/tic-tac-toe/agent.ts');
/** The command line, as a process that loads it at once. */
export const temperCommand = (): string[] => [process.execPath, codeFile('cli/temper.js')];

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Both, in the order in which they came. */
  readonly output: string;
}

/** A command as a person types it: a real process, and what it prints on either stream. */
export interface Command {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly output: () => string;
  /** Null while it runs; its exit code, or the signal that ended it. */
  readonly outcome: () => number | string | null;
  readonly ended: Promise<Ended>;
  /** Ctrl-C: a terminal tells the whole process group. */
  readonly interrupt: () => void;
}

/** It ends with this process, whatever ended that; with it ends the stack that it alone holds. */
export function startCommand(cwd: string, line: readonly string[], env: NodeJS.ProcessEnv = process.env): Command {
  const [file = '', ...args] = line;
  // A test may take the programs of this machine away.
  const [program, words] = env['PATH'] === process.env['PATH'] ? leashed(file, args) : [file, args];
  const child = spawn(program, words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let [stdout, stderr, output] = ['', '', ''];
  let outcome: number | string | null = null;
  child.stdout.setEncoding('utf8').on('data', (text: string) => ((stdout += text), (output += text)));
  child.stderr.setEncoding('utf8').on('data', (text: string) => ((stderr += text), (output += text)));
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => {
    outcome = (code ?? signal) as number | string;
    return { code: code as number | null, stdout, stderr, output };
  });
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  return {
    child,
    stdout: () => stdout,
    output: () => output,
    outcome: () => outcome,
    ended,
    interrupt: () => void (isRunning() && child.pid !== undefined && process.kill(-child.pid, 'SIGINT')),
  };
}

export function runTemper(cwd: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Ended> {
  return startCommand(cwd, [...temperCommand(), ...args], env).ended;
}

export const linesOf = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '');

/** Standard output of a command that succeeds. */
export async function succeed(ended: Promise<Ended>): Promise<string> {
  const { code, stdout, output } = await ended;
  if (code !== 0) throw new Error(`the command must end with 0, it ended with ${code}:\n${output}`);
  return stdout;
}

const stackFileOf = (folder: string): StackFile | null => readStackFile(join(folder, '.temper', 'stack.json'));

/** Names of the processes of a project's local stack that are alive. */
export function aliveIn(folder: string): string[] {
  const stack = stackFileOf(folder);
  const all = stack === null ? [] : [{ name: 'daemon', ...stack }, ...stack.children];
  return all.filter(isAlive).map(({ name }) => name);
}

interface ProjectOptions {
  /** Folder of a project that is there; else a new one is made. */
  readonly folder?: string;
  /** The folder that is removed at the end, if the project's own is in another. */
  readonly home?: string;
  /** Contents of a new project's `temporal.config.ts`. */
  readonly config?: object;
  /** Variables of its commands besides those of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Words that its commands begin with; by default the command line. */
  readonly program?: readonly string[];
}

export class Project {
  readonly folder: string;
  readonly state: string;
  /** The folder where processes with points find what they are aimed at (crash/points/protocol.ts). */
  readonly points: string;
  readonly env: NodeJS.ProcessEnv;
  readonly #home: string;
  readonly #program: readonly string[];
  readonly #started: Command[] = [];
  readonly #logs = new Map<string, { bytes: number; lines: Record<string, unknown>[] }>();
  #holder: Holder | null = null;

  constructor({ folder, home, config = NO_STANDBY, env = {}, program = temperCommand() }: ProjectOptions = {}) {
    this.folder = folder ?? mkdtempSync(join(tmpdir(), 'temper-project-'));
    this.#home = home ?? this.folder;
    this.state = join(this.folder, '.temper');
    this.points = join(this.folder, 'points');
    this.env = { ...process.env, ...env };
    this.#program = program;
    if (folder === undefined) this.configure(config);
  }

  configure(config: object): void {
    mkdirSync(this.state, { recursive: true });
    writeFileSync(join(this.folder, CONFIG_FILE), `export default ${JSON.stringify(config)};\n`);
  }

  start(...args: string[]): Command {
    return this.startLine([...this.#program, ...args]);
  }

  startLine(line: readonly string[]): Command {
    const command = startCommand(this.folder, line, this.env);
    this.#started.push(command);
    return command;
  }

  run(...args: string[]): Promise<Ended> {
    return this.start(...args).ended;
  }

  /** Standard output of a command that must succeed. */
  done(...args: string[]): Promise<string> {
    return succeed(this.run(...args));
  }

  async show<Shown>(run: string): Promise<Shown> {
    return JSON.parse(await this.done('show', run, '--json')) as Shown;
  }

  /** What a run has recorded last of itself. */
  async stateOf<State>(run: string): Promise<State> {
    return (await this.show<{ state: State }>(run)).state;
  }

  /** Has a stack until the project closes; other commands join it. */
  async hold(options: Omit<HoldOptions, 'project'>): Promise<void> {
    this.#holder = holdStack({ project: this.folder, ...options }, this.env);
    await this.#holder.opened;
  }

  /** Null before the daemon has written it. */
  stackFile(): StackFile | null {
    return stackFileOf(this.folder);
  }

  /** The pid of a child of the stack by the beginning of its name, or of the daemon itself. */
  pid(name: string): number {
    const pid = this.findPid(name);
    if (pid === null) throw new Error(`the stack has no ${name}`);
    return pid;
  }

  findPid(name: string): number | null {
    const stack = this.stackFile();
    if (name === 'daemon') return stack?.pid ?? null;
    return stack?.children.find((child) => child.name.startsWith(name))?.pid ?? null;
  }

  alive(): string[] {
    return aliveIn(this.folder);
  }

  /** All that it knew of weights is gone: the next one reads them from the store. */
  async killGpuWorker(): Promise<void> {
    const killed = this.pid('gpu-worker');
    process.kill(killed, 'SIGKILL');
    const isAnother = () => ![null, killed].includes(this.findPid('gpu-worker'));
    await until('another GPU worker is there', isAnother, GONE_WITHIN_MS);
  }

  /** The next process of this kind to pass the point is hit there. */
  aim(process: ProcessName, { occurrence = 1, action = 'kill', ...aim }: Pick<Aim, 'row' | 'point'> & Partial<Aim>) {
    writeFileSync(join(this.points, `aim-${process}.json`), JSON.stringify({ ...aim, occurrence, action }));
  }

  hit(row: string): Hit | null {
    return readLines<Hit>(join(this.points, 'hits.jsonl')).find((hit) => hit.row === row) ?? null;
  }

  path(...parts: string[]): string {
    return join(this.state, ...parts);
  }

  manifest(run: string, step: number, branch = 0): string {
    return this.path('store', 'runs', run, 'branches', `${branch}`, 'steps', `${step}`, 'manifest.json');
  }

  journals(run: string): string[] {
    return [this.path('store', 'runs', run, 'journal')];
  }

  effects(): { time: number; value: number }[] {
    return [];
  }

  /** One JSON object per line of a file of the project's state. */
  lines<T>(...parts: string[]): T[] {
    return readLines<T>(this.path(...parts));
  }

  /** Lines are parsed once: some tests look again and again while a log grows. */
  log(name: string): Record<string, unknown>[] {
    const file = this.path('logs', `${name}.jsonl`);
    if (!existsSync(file)) return [];
    const [bytes, before] = [readFileSync(file), this.#logs.get(name)];
    const known = before !== undefined && before.bytes <= bytes.length ? before : { bytes: 0, lines: [] };
    const added = bytes.subarray(known.bytes);
    const whole = added.subarray(0, added.lastIndexOf('\n') + 1);
    const lines = [...known.lines, ...parseLines<Record<string, unknown>>(whole.toString('utf8'))];
    this.#logs.set(name, { bytes: known.bytes + whole.length, lines });
    return lines;
  }

  forgetLogs(): void {
    this.#logs.clear();
  }

  /** Calls of a run that the engine has answered. */
  callsOf(run: string): number {
    const isOne = ({ msg, call }: Record<string, unknown>) => msg === 'call' && String(call).startsWith(`${run}.`);
    return this.log('gpu-worker').filter(isOne).length;
  }

  /** The bytes of a run that are the same however often it was killed: manifests, rollouts, verdicts, by their name in the run. */
  committed(run: string): Record<string, string> {
    const folder = this.path('store', 'runs', run, 'branches');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
      /\.(json|gz|safetensors)$/.test(file),
    );
    const kept = files.filter((file) => !file.endsWith('.times.json')).toSorted();
    const read = (file: string): Buffer => {
      const bytes = readFileSync(join(folder, file));
      return isPosition(file) ? untimedPosition(bytes) : bytes;
    };
    return Object.fromEntries(kept.map((file) => [file, read(file).toString('base64')]));
  }

  /** Commands that were started here end. */
  async endCommands(): Promise<void> {
    for (const command of this.#started) command.interrupt();
    await Promise.all(this.#started.map(({ ended }) => ended));
  }

  async letGo(): Promise<void> {
    await this.#holder?.end();
    this.#holder = null;
  }

  async close(): Promise<void> {
    await this.endCommands();
    await this.letGo();
    await until('the stack is gone', () => this.alive().length === 0, GONE_WITHIN_MS);
    rmSync(this.#home, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Its commands are whole lines, as a user types them. */
export class ProjectFolder extends Project {
  constructor(folder: string, options: Pick<ProjectOptions, 'home' | 'env'> = {}) {
    super({ ...options, folder, program: [] });
  }
}

/** A checkout with a `.temper` of its own: all but `package.json`, which marks a project, and the configuration is linked. */
export function linkCheckout(env: NodeJS.ProcessEnv = {}, config = WITHOUT_STANDBY): ProjectFolder {
  const checkout = new ProjectFolder(mkdtempSync(join(tmpdir(), 'temper-checkout-')), { env });
  const notLinked = new Set(['.temper', '.git', 'package.json', CONFIG_FILE]);
  for (const name of readdirSync(ROOT)) {
    if (!notLinked.has(name)) symlinkSync(join(ROOT, name), join(checkout.folder, name));
  }
  writeFileSync(join(checkout.folder, CONFIG_FILE), config);
  cpSync(join(ROOT, 'package.json'), join(checkout.folder, 'package.json'));
  return checkout;
}

export interface Holder {
  readonly process: ChildProcess;
  readonly opened: Promise<LocalStack>;
  end(): Promise<void>;
}

/** A stack that is held by a process of its own, which lets go of it at the end of this one. */
export function holdStack(options: HoldOptions, env: NodeJS.ProcessEnv = process.env): Holder {
  const [node = '', ...args] = codeCommand('test/hold-stack.ts');
  const child = spawn(node, [...args, JSON.stringify(options)], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  const opened = new Promise<LocalStack>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => resolve(JSON.parse(line) as LocalStack));
    void ended.then(([code]: unknown[]) => reject(new Error(`the holder ended with ${String(code)}`)));
  });
  opened.catch(() => undefined);
  return {
    process: child,
    opened,
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}

/** Whole lines; the last one may be in the making. */
export function readLines<T>(file: string): T[] {
  return existsSync(file) ? parseLines<T>(readFileSync(file, 'utf8')) : [];
}

function parseLines<T>(text: string): T[] {
  const whole = text.split('\n').slice(0, -1);
  return whole.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as T);
}
