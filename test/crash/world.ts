/** A project with one warm local stack whose processes have points, and a store that each row finds empty. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { STANDING_BY } from '../../core/contract/wire-constants.ts';
import type { EngineConfig } from '../../workers/config/config.ts';
import { isAlive } from '../../workers/process/processes.ts';
import { codeCommand, codeFile } from '../compiled.ts';
import { freePort } from '../free-port.ts';
import { descendantsOf, parentOf, processesIn } from '../processes.ts';
import { findVersitygw } from '../run/versitygw.ts';
import { BUCKET, S3Server } from '../s3-server.ts';
import { Project, readLines, type Command } from '../stack.ts';
import { Timeout, until } from '../until.ts';
import type { Pass, ProcessName } from './points/protocol.ts';

const AGENT = 'test/crash/agents/crash.ts';
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
const STANDBY_WITHIN_MS = 120_000;
const ALL_END_WITHIN_MS = 60_000;
/** Each look reads the whole log, beside a process that imports at the lowest priority. */
const STANDBY_POLL_MS = 250;
/** Prefix of the store in the bucket. */
const PREFIX = 'crash';
const CHILDREN: Partial<Record<ProcessName, string>> = {
  'temporal-server': 'temporal-server',
  'typescript-worker': 'worker-',
  'gpu-worker': 'gpu-worker',
};

export class World extends Project {
  /** The store's objects as files, by their keys: those in a bucket as well. */
  readonly store: string;
  /** Staleness of the runs that are started next. */
  maxStaleness = 0;
  readonly #s3: S3Server | null;
  readonly #python: string;
  /** Pids of all that ever did, as they said in logs that are emptied with each row. */
  readonly #standingBy = new Set<unknown>();
  /** Processes that a GPU worker started: vLLM's guard, its server, its engine and whatever these start, or its ranks. */
  readonly #ofWorker = new Set<number>();
  #chosen = 0;

  /** With an S3 server the store is in its bucket, without one in the project's folder. */
  constructor(python: string, folder: string | null, config: object = {}, s3: S3Server | null = null) {
    if (folder !== null) mkdirSync(folder, { recursive: true });
    super(folder === null ? {} : { folder });
    this.configure(config);
    this.#python = python;
    this.#s3 = s3;
    this.store = s3?.file(PREFIX) ?? this.path('store');
    mkdirSync(this.points, { recursive: true });
    // Inherited by all that the stack starts.
    const own = { TEMPER_CRASH_FOLDER: this.points, TEMPER_CRASH_STORE: s3 === null ? 'folder' : 'bucket' };
    for (const name of Object.keys(this.env)) if (s3 !== null && name.startsWith('AWS_')) delete this.env[name];
    Object.assign(this.env, s3?.env, own);
  }

  async open(): Promise<void> {
    await this.#s3?.start();
    const gpuWorker = [this.#python, fileURLToPath(new URL('points/gpu_worker.py', import.meta.url))];
    const worker = codeCommand('test/crash/points/worker.ts');
    await this.hold({ agentFile: codeFile(AGENT), commands: { gpuWorker, worker } });
  }

  override async letGo(): Promise<void> {
    await super.letGo();
    await this.#s3?.kill();
    const areLeft = () => [...this.#ofWorker].some((pid) => parentOf(pid) !== null);
    await until('no process of the GPU worker is left', () => !areLeft(), ALL_END_WITHIN_MS);
  }

  train(run: string): Command {
    const { maxStaleness } = this;
    const given = maxStaleness === 0 ? FLAGS : { ...FLAGS, 'max-staleness': maxStaleness };
    const flags = Object.entries(given).flatMap(([name, value]) => [`--${name}`, String(value)]);
    return this.startLine([
      ...codeCommand('test/crash/points/cli.ts'),
      'train',
      codeFile(AGENT),
      '--run',
      run,
      ...flags,
    ]);
  }

  /** Another GPU worker stands by; or the machine is so busy that it does not get to import, at its low priority. */
  async settle(): Promise<void> {
    const standby = () => this.findPid('standby-gpu-worker');
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
    for (const name of readdirSync(this.points)) rmSync(join(this.points, name), { force: true });
    for (const log of readdirSync(this.path('logs'))) truncateSync(this.path('logs', log));
    this.forgetLogs();
  }

  /** Keeps what a row left, for somebody to look at. */
  keep(name: string): string {
    const folder = join(this.folder, 'failed', name);
    cpSync(this.path('logs'), join(folder, 'logs'), { recursive: true });
    cpSync(this.store, join(folder, 'store'), { recursive: true });
    for (const spool of this.#spools()) cpSync(spool, join(folder, 'spool'), { recursive: true });
    cpSync(this.points, join(folder, 'points'), { recursive: true });
    return folder;
  }

  release(row: string): void {
    writeFileSync(join(this.points, `released-${row}`), '');
  }

  passes(): Pass[] {
    return readLines(join(this.points, 'trace.jsonl'));
  }

  /** Uses of the agents' tool: each time that it was really used. */
  override effects(): { time: number; value: number }[] {
    return readLines(join(this.points, 'effects.jsonl'));
  }

  /**
   * The folders of a run's journal. A record on its way to a bucket lies on this host first, and leaves it once the
   * bucket has it: in this order none is missed.
   */
  override journals(run: string): string[] {
    return [...this.#spools(), this.store].map((folder) => join(folder, 'runs', run, 'journal'));
  }

  /** Changes whenever a server writes something down. */
  writtenStamp(server: ProcessName): string {
    if (server === 's3-server') return foldersIn(join(this.store, 'runs')).map(stamp).join();
    const files = namesIn(this.state).filter((name) => name.startsWith('temporal.db'));
    return files.map((name) => stamp(join(this.state, name))).join();
  }

  /** A supervisor would do this: it is none of the local stack's. */
  async restartS3Server(): Promise<void> {
    await this.#s3?.kill();
    await this.#s3?.start();
  }

  /** Null for one that does not run. */
  pidOf(name: ProcessName): number | null {
    if (name === 's3-server') return this.#s3?.process.pid ?? null;
    if (name === 'vllm' || name === 'rank') return this.#nextOfWorker();
    if (name === 'daemon') return this.findPid(name);
    const child = CHILDREN[name];
    const isOne = (mark: { name: string }) => child !== undefined && mark.name.startsWith(child);
    return this.stackFile()?.children.find((mark) => isOne(mark) && isAlive(mark))?.pid ?? null;
  }

  /** Another one of them each time; null where there is none. */
  #nextOfWorker(): number | null {
    const worker = this.pidOf('gpu-worker');
    const pids = worker === null ? [] : descendantsOf(worker);
    for (const pid of pids) this.#ofWorker.add(pid);
    return pids[this.#chosen++ % pids.length] ?? null;
  }

  childPids(): number[] {
    return (this.stackFile()?.children ?? []).filter(isAlive).map(({ pid }) => pid);
  }

  /** Servers on this project's database, whoever started them. */
  servers(): number[] {
    return processesIn(realpathSync(this.state), 'temporal.db');
  }

  signal(name: ProcessName, signal: NodeJS.Signals): number | null {
    const pid = this.pidOf(name);
    if (pid !== null) process.kill(pid, signal);
    return pid;
  }

  /** Spools of the one store; none where it is no bucket. */
  #spools(): string[] {
    return namesIn(this.path('spool')).map((id) => this.path('spool', id));
  }
}

/** One whose store is in a bucket of its own S3 server. */
export async function createBucketWorld(python: string, folder: string, standby: boolean): Promise<World> {
  const server = new S3Server(await findVersitygw(), join(folder, 's3'), await freePort());
  return new World(python, folder, { store: `s3://${BUCKET}/${PREFIX}`, localStack: { standby } }, server);
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
  return new World(python, folder, { engine, localStack: { standby: false } });
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
