/** A program with all that it starts, ended together: by its group, and on Linux whoever left the group as well. */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { MARK_VARIABLE, PROCESS_MARK, type ProgramLeash } from './program-leash.ts';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  /** In ticks since the machine's start. */
  readonly startedAt: number;
}

/** A process that forks without end is ended all the same: its group at once, the others in rounds. */
const ROUNDS = 40;
const ROUND_MS = 25;

interface ProcessTreeOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly leash: ProgramLeash;
  /** Its stdin is a pipe; empty by default. */
  readonly takesInput?: boolean;
}

export class ProcessTree {
  /** `stdin` is null unless it takes input. */
  readonly process: ChildProcessByStdio<Writable | null, Readable, Readable>;
  /** Exit of the program itself; rejects if it cannot be started. */
  readonly exit: Promise<Exit>;
  readonly #mark = `${PROCESS_MARK}.${randomUUID()}`;
  readonly #leash: ProgramLeash;
  /** Of the program: what it has started is not older. 0 if it is not known. */
  readonly #startedAt: number;

  constructor([file = '', ...args]: readonly string[], { cwd, env, leash, takesInput = false }: ProcessTreeOptions) {
    this.#leash = leash;
    leash.hold();
    this.process = spawn(file, args, {
      cwd,
      env: { ...env, [MARK_VARIABLE]: this.#mark },
      stdio: [takesInput ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      // A session of its own: its group has its process id.
      detached: true,
    }) as ChildProcessByStdio<Writable | null, Readable, Readable>;
    this.exit = new Promise((resolve, reject) => {
      this.process.on('error', reject).on('exit', (code, signal) => resolve({ code, signal }));
    });
    this.exit.catch(() => undefined);
    this.#startedAt = readProcess(this.process.pid ?? 0)[0]?.startedAt ?? 0;
    if (this.process.pid !== undefined) leash.add(this.process.pid);
  }

  /** Resolves once nothing of it is left, or what is left cannot be ended. */
  async end(): Promise<void> {
    const { pid } = this.process;
    if (pid === undefined) return;
    for (let round = 0; round < ROUNDS; round++) {
      // Looked for first: while all live, it is known who started whom.
      const left = findLeft(pid, this.#mark, this.#startedAt);
      kill(-pid);
      if (left.length === 0) break;
      for (const each of left) kill(each);
      await sleep(ROUND_MS);
    }
    this.#leash.remove(pid);
  }
}

function findLeft(leader: number, mark: string, since: number): number[] {
  if (process.platform !== 'linux') return [];
  const all = listProcesses()
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)));
  const isOwn = ({ pid, session, startedAt }: ProcessEntry): boolean =>
    session === leader || (startedAt >= since && hasMark(pid, mark));
  const left = new Set(all.filter(isOwn).map(({ pid }) => pid));
  for (let before = -1; before !== left.size;) {
    before = left.size;
    for (const { pid, parent } of all) if (left.has(parent)) left.add(pid);
  }
  return [...left];
}

/** None where this process may open no more files: then the group is all that is known. */
function listProcesses(): string[] {
  try {
    return readdirSync('/proc');
  } catch {
    return [];
  }
}

/** Place of the time of start, the 22nd field of `stat`, among those after the name. */
const STARTED_AT = 19;

/** None for one that is gone, and for one that is dead and only waits for its parent to notice. */
function readProcess(pid: number): ProcessEntry[] {
  const stat = read(`/proc/${pid}/stat`);
  // The name before it may contain anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state = 'X', parent, , session] = fields;
  if (stat === '' || /[ZX]/.test(state)) return [];
  return [{ pid, parent: Number(parent), session: Number(session), startedAt: Number(fields[STARTED_AT]) }];
}

function hasMark(pid: number, mark: string): boolean {
  return read(`/proc/${pid}/environ`).split('\0').includes(`${MARK_VARIABLE}=${mark}`);
}

/** Empty where the process has ended, or is another user's. */
function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

/** Gone already, or another user's by now: nothing that could be done. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // See above.
  }
}

/** Signals by which a program ends itself: it would each time it is played again. */
const OWN_SIGNALS = new Set<string>([
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGPIPE',
  'SIGSEGV',
  'SIGSYS',
  'SIGTRAP',
  'SIGXCPU',
  'SIGXFSZ',
]);

export function isOwnSignal(signal: string): boolean {
  return OWN_SIGNALS.has(signal);
}
