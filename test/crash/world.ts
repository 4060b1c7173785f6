/** A project with one warm local stack whose processes have points, and a store that each row finds empty. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { STANDING_BY } from '../../core/wire-constants.ts';
import type { EngineConfig } from '../../workers/config/config.ts';
import { openLocalStack, type LocalStack } from '../../workers/local-stack/client.ts';
import { isAlive } from '../../workers/process/processes.ts';
import { readStackFile, type StackFile } from '../../workers/local-stack/protocol/stack-file.ts';
import { nodeFlags } from '../../workers/process/module-path.ts';
import { freePort } from '../free-port.ts';
import { findVersitygw } from '../run/versitygw.ts';
import { BUCKET, S3Server } from '../s3-server.ts';
import type { Aim, Hit, Pass, ProcessName } from './points/protocol.ts';
import { processesIn, WorkersProcesses } from './processes.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export const AGENT = here('agents/crash.ts');
/** Small, and still all that there is: replaced groups, several micro-batches, evaluations, continue-as-new. */
export const STEPS = 4;
const FLAGS: Record<string, number | string> = {
  'base-model': 'pocket',
  steps: STEPS,
  'groups-per-step': 2,
  'group-size': 4,
  'eval-every': 2,
  'continue-as-new-every': 2,
  'micro-batch-tokens': 64,
  'learning-rate': '4e-3',
  // Deals a mix of scenarios to every step, one without variance to the second, and the slow one to the first.
  seed: 10,
};
const POLL_MS = 5;
const STANDBY_WITHIN_MS = 120_000;
const ALL_END_WITHIN_MS = 10_000;
/** Each look reads the whole log, beside a process that imports at the lowest priority. */
const STANDBY_POLL_MS = 250;
/** Prefix of the store in the bucket. */
const PREFIX = 'crash';
const CHILDREN: Partial<Record<ProcessName, string>> = {
  'temporal-server': 'temporal-server',
  'typescript-worker': 'worker-',
  'gpu-worker': 'gpu-worker',
};

export interface Running {
  readonly child: ChildProcess;
  /** Null while it runs; its exit code, or the signal that ended it. */
  outcome(): number | string | null;
  output(): string;
  readonly ended: Promise<void>;
}

export class World {
  readonly folder: string;
  /** The store's objects as files, by their keys: those in a bucket as well. */
  readonly store: string;
  /** Staleness of the runs that are started next. */
  maxStaleness = 0;
  readonly #s3: S3Server | null;
  readonly #standby: boolean;
  readonly #points: string;
  readonly #state: string;
  readonly #python: string;
  #stack: LocalStack | null = null;
  /** Pids of all that ever did, as they said in logs that are emptied with each row. */
  readonly #standingBy = new Set<unknown>();
  readonly #ofWorker = new WorkersProcesses();

  /** With an S3 server the store is in its bucket, without one in the project's folder. */
  constructor(python: string, project: string | null, s3: S3Server | null = null, standby = true) {
    this.#python = python;
    this.#s3 = s3;
    this.#standby = standby;
    this.folder = project ?? mkdtempSync(join(tmpdir(), 'temper-crash-'));
    this.#points = join(this.folder, 'points');
    this.#state = join(this.folder, '.temper');
    this.store = s3?.file(PREFIX) ?? this.path('store');
    for (const folder of [this.#points, this.#state]) mkdirSync(folder, { recursive: true });
  }

  async open(): Promise<void> {
    await this.#openBucket();
    // Inherited by all that the stack starts.
    process.env['TEMPER_CRASH_FOLDER'] = this.#points;
    process.env['TEMPER_CRASH_STORE'] = this.#s3 === null ? 'folder' : 'bucket';
    this.#stack = await openLocalStack({
      project: this.folder,
      agentFile: AGENT,
      models: {},
      onEvent: () => undefined,
      commands: {
        gpuWorker: [this.#python, here('points/gpu_worker.py')],
        worker: [process.execPath, ...nodeFlags(), here('points/worker.ts')],
      },
    });
  }

  async close(): Promise<void> {
    await this.#stack?.close();
    this.#stack = null;
    await this.#s3?.kill();
    await until('no process of the GPU worker is left', () => !this.#ofWorker.areLeft(), ALL_END_WITHIN_MS);
  }

  /** Reads the whole run again, and makes its last step again from what was recorded. */
  async verify(run: string): Promise<void> {
    const running = start([here('../../cli/temper.js'), 'verify', run], this.folder);
    await running.ended;
    if (running.outcome() !== 0) throw new Error(`temper verify ${run} must find nothing wrong:\n${running.output()}`);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  train(run: string, from: 'with points' | 'as installed' = 'with points'): Running {
    const entry = from === 'with points' ? [...nodeFlags(), here('points/cli.ts')] : [here('../../cli/temper.js')];
    const { maxStaleness } = this;
    const given = maxStaleness === 0 ? FLAGS : { ...FLAGS, 'max-staleness': maxStaleness };
    const flags = Object.entries(given).flatMap(([name, value]) => [`--${name}`, String(value)]);
    return start([...entry, 'train', AGENT, '--run', run, ...flags], this.folder);
  }

  /** Another GPU worker stands by; or the machine is so busy that it does not get to import, at its low priority. */
  async settle(): Promise<void> {
    const standby = () => this.#stackFile()?.children.find(({ name }) => name === 'standby-gpu-worker')?.pid ?? 0;
    await until(
      'a GPU worker stands by',
      () => this.#findStandingBy().has(standby()),
      STANDBY_WITHIN_MS,
      STANDBY_POLL_MS,
    ).catch((error: unknown) => {
      if (!(error instanceof Timeout)) throw error;
    });
  }

  #findStandingBy(): Set<unknown> {
    for (const { msg, pid } of this.log('gpu-worker')) if (msg === STANDING_BY) this.#standingBy.add(pid);
    return this.#standingBy;
  }

  /** An empty store and empty logs; the processes stay. What was in the store's cache of hashes is in no store now. */
  clear(): void {
    this.#findStandingBy();
    for (const name of ['blobs', 'runs']) {
      if (this.#s3 === null) rmSync(join(this.store, name), { recursive: true, force: true });
      else this.#s3.forget(`${PREFIX}/${name}`);
    }
    for (const spool of this.#spools()) rmSync(join(spool, 'runs'), { recursive: true, force: true });
    for (const name of readdirSync(this.#points)) rmSync(join(this.#points, name), { force: true });
    for (const log of readdirSync(this.path('logs'))) truncateSync(this.path('logs', log));
  }

  /** Keeps what a row left, for somebody to look at. */
  keep(name: string): string {
    const folder = join(this.folder, 'failed', name);
    cpSync(this.path('logs'), join(folder, 'logs'), { recursive: true });
    cpSync(this.store, join(folder, 'store'), { recursive: true });
    for (const spool of this.#spools()) cpSync(spool, join(folder, 'spool'), { recursive: true });
    cpSync(this.#points, join(folder, 'points'), { recursive: true });
    return folder;
  }

  aim(process: ProcessName, aim: Aim): void {
    writeFileSync(join(this.#points, `aim-${process}.json`), JSON.stringify(aim));
  }

  release(row: string): void {
    writeFileSync(join(this.#points, `released-${row}`), '');
  }

  hit(row: string): Hit | null {
    return this.#lines<Hit>('hits').find((hit) => hit.row === row) ?? null;
  }

  passes(): Pass[] {
    return this.#lines('trace');
  }

  /** Uses of the agents' tool: each time that it was really used. */
  effects(): { time: number; value: number }[] {
    return this.#lines('effects');
  }

  log(name: 'gpu-worker' | 'worker-crash' | 'stack'): Record<string, unknown>[] {
    return readLines(this.path('logs', `${name}.jsonl`));
  }

  /**
   * The folders of a run's journal. A record on its way to a bucket lies on this host first, and leaves it once the
   * bucket has it: in this order none is missed.
   */
  journals(run: string): string[] {
    return [...this.#spools(), this.store].map((folder) => join(folder, 'runs', run, 'journal'));
  }

  /** Changes whenever a server writes something down. */
  writtenStamp(server: ProcessName): string {
    if (server === 's3-server') return foldersIn(join(this.store, 'runs')).map(stamp).join();
    const files = namesIn(this.#state).filter((name) => name.startsWith('temporal.db'));
    return files.map((name) => stamp(join(this.#state, name))).join();
  }

  /** A supervisor would do this: it is none of the local stack's. */
  async restartS3Server(): Promise<void> {
    await this.#s3?.kill();
    await this.#s3?.start();
  }

  pid(name: ProcessName): number | null {
    if (name === 's3-server') return this.#s3?.process.pid ?? null;
    if (name === 'vllm' || name === 'rank') return this.#ofWorker.next(this.pid('gpu-worker'));
    const stack = this.#stackFile();
    if (stack === null) return null;
    if (name === 'daemon') return stack.pid;
    const child = CHILDREN[name];
    return (
      stack.children.find((mark) => child !== undefined && mark.name.startsWith(child) && isAlive(mark))?.pid ?? null
    );
  }

  childPids(): number[] {
    return (this.#stackFile()?.children ?? []).filter(isAlive).map(({ pid }) => pid);
  }

  /** Servers on this project's database, whoever started them. */
  servers(): number[] {
    return processesIn(realpathSync(this.#state), 'temporal.db');
  }

  alive(): string[] {
    const stack = this.#stackFile();
    return (stack?.children ?? []).filter(isAlive).map(({ name }) => name);
  }

  signal(name: ProcessName, signal: NodeJS.Signals): number | null {
    const pid = this.pid(name);
    if (pid !== null) process.kill(pid, signal);
    return pid;
  }

  path(...parts: string[]): string {
    return join(this.#state, ...parts);
  }

  #stackFile(): StackFile | null {
    return readStackFile(this.path('stack.json'));
  }

  async #openBucket(): Promise<void> {
    if (this.#s3 === null) return;
    await this.#s3.start();
    for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
    Object.assign(process.env, this.#s3.env);
    const config = { store: `s3://${BUCKET}/${PREFIX}`, localStack: { standby: this.#standby } };
    writeFileSync(join(this.folder, 'temporal.config.ts'), `export default ${JSON.stringify(config)};\n`);
  }

  /** Spools of the one store; none where it is no bucket. */
  #spools(): string[] {
    return namesIn(this.path('spool')).map((id) => this.path('spool', id));
  }

  #lines<T>(name: string): T[] {
    return readLines(join(this.#points, `${name}.jsonl`)) as T[];
  }
}

/** One whose store is in a bucket of its own S3 server. */
export async function createBucketWorld(python: string, folder: string, standby: boolean): Promise<World> {
  return new World(python, folder, new S3Server(await findVersitygw(), join(folder, 's3'), await freePort()), standby);
}

/** One whose GPU worker samples with vLLM. */
export function createVllmWorld(python: string, folder: string): World {
  return createConfiguredWorld(python, folder, { kind: 'vllm' });
}

/** One whose steps are made by two ranks. */
export function createRanksWorld(python: string, folder: string): World {
  return createConfiguredWorld(python, folder, { devices: 2 });
}

function createConfiguredWorld(python: string, folder: string, engine: Partial<EngineConfig>): World {
  mkdirSync(folder, { recursive: true });
  const config = { engine, localStack: { standby: false } };
  writeFileSync(join(folder, 'temporal.config.ts'), `export default ${JSON.stringify(config)};\n`);
  return new World(python, folder, null, false);
}

function start(command: readonly string[], cwd: string): Running {
  const child = spawn(process.execPath, command, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let outcome: number | string | null = null;
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += String(text)));
  const ended = (async () => {
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    outcome = code ?? signal;
  })();
  return { child, output: () => output, outcome: () => outcome, ended };
}

/** Whole lines; the last one may be in the making. */
export function readLines(file: string): Record<string, unknown>[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  const whole = text.split('\n').slice(0, -1);
  return whole.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Record<string, unknown>);
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** A folder changes with each name in it. */
function foldersIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name));
}

function stamp(file: string): string {
  try {
    const { mtimeNs, size } = statSync(file, { bigint: true });
    return `${mtimeNs}/${size}`;
  } catch {
    return '';
  }
}

export class Timeout extends Error {}

export async function until(what: string, isTrue: () => boolean, withinMs: number, pollMs = POLL_MS): Promise<void> {
  for (const end = Date.now() + withinMs; !isTrue();) {
    if (Date.now() > end) throw new Timeout(`not within ${withinMs / 1000} s: ${what}`);
    await sleep(pollMs);
  }
}
