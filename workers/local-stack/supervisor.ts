/** Keeps one child running: a death is told with its last log lines, and followed by a new start after a growing pause. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { collectLines } from '../command.ts';
import type { ChildState, ChildStatus, StackEvent } from './events.ts';
import { leashed } from './leashed.ts';
import type { ChildLog } from './child-log.ts';
import { waitUntilReady } from './readiness.ts';
import type { Readiness } from './readiness.ts';

export interface ChildSpec {
  readonly name: string;
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly ready: Readiness;
  /** How long SIGTERM is given before SIGKILL. */
  readonly stopMs: number;
}

export interface Supervised {
  status(): ChildStatus;
  /** Ends the child for good; resolves when it is gone. */
  stop(): Promise<void>;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;
/** A child that lived this long has proven itself: its next death is a first one again. */
const SETTLED_MS = 30_000;
const SHOWN_LINES = 15;

export function supervise(spec: ChildSpec, log: ChildLog, onEvent: (event: StackEvent) => void): Supervised {
  let child: ChildProcess | null = null;
  let state: ChildState = 'starting';
  let deaths = 0;
  let deathsInARow = 0;
  let stopping: Promise<void> | null = null;
  let pause: NodeJS.Timeout | undefined;

  const status = (): ChildStatus => ({ name: spec.name, state, pid: child?.pid ?? null, deaths });
  const enter = (next: ChildState) => {
    state = next;
    onEvent({ kind: 'child', child: status() });
  };

  const start = () => {
    const startedAt = Date.now();
    const lines: string[] = [];
    const alive = new AbortController();
    const started = spawnChild(spec);
    child = started;
    collectLines(started, (line) => {
      lines.push(log.write(line));
      if (lines.length > SHOWN_LINES) lines.shift();
    });
    started.on('error', (error) => lines.push(log.write(error.message)));
    whenEnded(started, (exit) => {
      alive.abort();
      child = null;
      if (stopping) return;
      onDeath(exit, lines, Date.now() - startedAt);
    });
    enter('starting');
    void watchReadiness(started, alive.signal);
  };

  const watchReadiness = async (started: ChildProcess, alive: AbortSignal) => {
    const ready = await waitUntilReady(spec.ready, started, alive);
    if (ready && child === started && !stopping) enter('ready');
  };

  const onDeath = (exit: string, lastLines: readonly string[], livedMs: number) => {
    deaths += 1;
    deathsInARow = livedMs > SETTLED_MS ? 1 : deathsInARow + 1;
    const restartInMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (deathsInARow - 1));
    pause = setTimeout(start, restartInMs);
    enter('restarting');
    onEvent({ kind: 'died', name: spec.name, exit, lastLines, deaths, restartInMs });
  };

  const stop = async () => {
    clearTimeout(pause);
    if (child) {
      enter('stopping');
      await endChild(child, spec.stopMs);
    }
    enter('stopped');
  };

  start();
  return { status, stop: () => (stopping ??= stop()) };
}

function spawnChild({ command: [program = '', ...rest], env, cwd }: ChildSpec): ChildProcess {
  const [file, args] = leashed(program, rest);
  // stdin stays open as long as this process lives: workers end when it closes.
  const child = spawn(file, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true });
  child.stdin.on('error', () => undefined);
  return child;
}

/** Once, also where the program could not be started at all. */
function whenEnded(child: ChildProcess, onEnd: (exit: string) => void): void {
  let told = false;
  const tell = (exit: string) => {
    if (told) return;
    told = true;
    onEnd(exit);
  };
  child.on('error', (error) => tell(error.message));
  child.on('close', (code, signal) => tell(signal ?? `exit code ${code}`));
}

async function endChild(child: ChildProcess, stopMs: number): Promise<void> {
  const ended = new Promise<void>((resolve) => whenEnded(child, () => resolve()));
  child.kill('SIGTERM');
  const kill = setTimeout(() => child.kill('SIGKILL'), stopMs);
  await ended;
  clearTimeout(kill);
}
