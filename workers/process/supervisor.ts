/** Keeps one child running: reports a death with its last log lines, and restarts after a growing pause. */
import type { ChildProcess } from 'node:child_process';
import type { ChildState, ChildStatus, StackEvent } from '../events.ts';
import type { ChildLog } from './child-log.ts';
import { endChild, startChild, type ChildSpec } from './child-process.ts';
import { whenEnded } from './command.ts';
import { waitUntilReady } from './readiness.ts';
import { Standby } from './standby.ts';

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
