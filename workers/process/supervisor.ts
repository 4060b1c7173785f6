/** Keeps one child running: reports a death with its last log lines, and restarts after a growing pause. */
import type { ChildProcess } from 'node:child_process';
import type { ChildState, ChildStatus, StackEvent } from '../events.ts';
import type { ChildLog } from './child-log.ts';
import { endChild, startChild, type ChildSpec, type StartedChild } from './child-process.ts';
import { whenEnded, collectLines } from './command.ts';
import { waitUntilReady } from './readiness.ts';
import { STANDING_BY } from '../../core/contract/wire-constants.ts';

export interface Supervised {
  status(): ChildStatus;
  /** Process ids of the child and its standby; undefined if missing. */
  pids(): Readonly<Record<string, number | undefined>>;
  /** Ends the child for good; resolves when it is gone. */
  stop(): Promise<void>;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;
/** A child that lived this long has proven itself: its next death is a first one again. */
const SETTLED_MS = 30_000;

export function supervise(spec: ChildSpec, log: ChildLog, onEvent: (event: StackEvent) => void): Supervised {
  let child: ChildProcess | null = null;
  let state: ChildState = 'starting';
  let deaths = 0;
  let deathsInARow = 0;
  let stopping: Promise<void> | null = null;
  let pause: NodeJS.Timeout | undefined;

  const { name, agentFile } = spec;
  const status = (): ChildStatus => ({ name, agentFile, state, pid: child?.pid ?? null, deaths });
  const enter = (next: ChildState) => {
    state = next;
    onEvent({ kind: 'child', child: status() });
  };

  const standby = new Standby(spec, log, () => onEvent({ kind: 'child', child: status() }));

  const start = () => {
    const alive = new AbortController();
    const started = standby.take() ?? startChild(spec, spec.command, log);
    child = started.child;
    whenEnded(started.child, (exit) => {
      alive.abort();
      child = null;
      if (stopping) return;
      onDeath(exit, started.lastLines, performance.now() - startedAt);
    });
    const startedAt = performance.now();
    enter('starting');
    watchReadiness(started.child, alive.signal).catch((error: unknown) =>
      onEvent({ kind: 'notice', message: `${name} is not watched any more: ${String(error)}` }),
    );
  };

  const watchReadiness = async (started: ChildProcess, alive: AbortSignal) => {
    const isReady = await waitUntilReady(spec.ready, started, alive);
    if (!isReady || child !== started || stopping) return;
    enter('ready');
    standby.prepare();
  };

  const onDeath = (exit: string, lastLines: readonly string[], livedMs: number) => {
    deaths += 1;
    deathsInARow = livedMs > SETTLED_MS ? 1 : deathsInARow + 1;
    const restartInMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (deathsInARow - 1));
    pause = setTimeout(start, restartInMs);
    enter('restarting');
    onEvent({ kind: 'died', name, exit, lastLines, deaths, restartInMs });
  };

  const stop = async () => {
    clearTimeout(pause);
    const standbyEnded = standby.stop();
    if (child) {
      enter('stopping');
      await endChild(child, spec.stopMs);
    }
    await standbyEnded;
    enter('stopped');
  };

  start();
  const pids = () => ({ [name]: child?.pid, [`standby-${name}`]: standby.pid });
  return { status, pids, stop: () => (stopping ??= stop()) };
}

/** The first work of a new child is not to be slowed down. */
const PREPARE_AFTER_MS = 3000;

/**
 * A second process of a child whose start takes long: it has everything imported and waits for a line on stdin. When the
 * child dies, it takes its place. One is made ready each time that a child has become of use: one that dies while it
 * waits (of too little memory, say) is not tried again until then.
 */
class Standby {
  readonly #spec: ChildSpec;
  readonly #log: ChildLog;
  readonly #onChange: () => void;
  #waiting: StartedChild | null = null;
  #isReady = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(spec: ChildSpec, log: ChildLog, onChange: () => void) {
    this.#spec = spec;
    this.#log = log;
    this.#onChange = onChange;
  }

  get pid(): number | undefined {
    return this.#waiting?.child.pid;
  }

  /** Starts one soon, if possible. */
  prepare(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#start(), PREPARE_AFTER_MS);
  }

  /** The waiting one, with its turn given; null if there is none, or it still imports: a new start is faster. */
  take(): StartedChild | null {
    clearTimeout(this.#timer);
    const taken = this.#waiting;
    this.#waiting = null;
    if (this.#isReady) taken?.child.stdin?.write('\n');
    else taken?.child.kill('SIGKILL');
    return this.#isReady ? taken : null;
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting) await endChild(waiting.child, this.#spec.stopMs);
  }

  #start(): void {
    if (this.#spec.standbyCommand === null || this.#waiting !== null) return;
    const started = startChild(this.#spec, this.#spec.standbyCommand, this.#log);
    this.#waiting = started;
    this.#isReady = false;
    collectLines(started.child, (line) => {
      if (line.includes(STANDING_BY) && this.#waiting === started) this.#isReady = true;
    });
    whenEnded(started.child, () => {
      if (this.#waiting === started) this.#waiting = null;
    });
    this.#onChange();
  }
}
