/** Waits during a start: each has a name and a limit, and ends early if waiting is hopeless. */
import { setTimeout as sleep } from 'node:timers/promises';
import { TemperError } from '../../core/contract/failures.ts';
import type { ChildStatus, StackEvent } from '../events.ts';
import { GPU_WORKER, TEMPORAL_SERVER } from './children/children.ts';
import { DaemonExited, type DaemonConnection } from './daemon-connection.ts';

export interface WaitOptions {
  readonly agentFile: string | null;
  readonly hasGpuWorker: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onEvent: (event: StackEvent) => void;
}

interface Wait {
  readonly for: string;
  isFor(child: ChildStatus): boolean;
  readonly limitMs: number;
}

const POLL_MS = 50;
const REPORT_AFTER_MS = 1000;
/** A child that died so often before it was ever ready will not be mended by waiting. */
const HOPELESS_DEATHS = 4;

const isNamed = (name: string) => (child: ChildStatus) => child.name === name;

const SERVER_WAIT: Wait = { isFor: isNamed(TEMPORAL_SERVER), for: 'the Temporal server', limitMs: 60_000 };
// Imports alone took two minutes on a machine with eight times the work that it has cores for.
const GPU_WORKER_WAIT: Wait = { isFor: isNamed(GPU_WORKER), for: 'the GPU worker', limitMs: 300_000 };
const TYPESCRIPT_WORKER = { for: 'the TypeScript worker', limitMs: 300_000 };

export async function waitForStack(
  connection: DaemonConnection,
  options: WaitOptions,
  prepareNamespace: () => Promise<void>,
): Promise<void> {
  const { agentFile, hasGpuWorker } = options;
  const waits: Wait[] = [
    ...(hasGpuWorker ? [GPU_WORKER_WAIT] : []),
    ...(agentFile === null
      ? []
      : [{ ...TYPESCRIPT_WORKER, isFor: (child: ChildStatus) => child.agentFile === agentFile }]),
  ];
  const server = async () => {
    if (connection.stack.ownsServer) await waitForChild(SERVER_WAIT, connection, options);
    await prepareNamespace();
  };
  await Promise.all([server(), ...waits.map((wait) => waitForChild(wait, connection, options))]);
}

async function waitForChild(wait: Wait, connection: DaemonConnection, { onEvent, signal }: WaitOptions): Promise<void> {
  const startedAt = performance.now();
  const countDeaths = createDeathCount();
  let reportedAt = startedAt;
  for (;;) {
    signal?.throwIfAborted();
    if (connection.isLost()) throw new DaemonExited('the local stack ended while it started');
    const status = connection.statuses().find((child) => wait.isFor(child));
    if (status?.state === 'ready') return;
    const waitedMs = performance.now() - startedAt;
    const reason = hopelessness(wait, waitedMs, countDeaths(status));
    if (reason !== null) throw notReady(wait, reason, status);
    if (performance.now() - reportedAt >= REPORT_AFTER_MS) {
      reportedAt = performance.now();
      onEvent({
        kind: 'waiting',
        for: wait.for,
        seconds: Math.round(waitedMs / 1000),
        limitSeconds: wait.limitMs / 1000,
      });
    }
    await sleep(POLL_MS);
  }
}

/** Counts from the first status, which may be in flight when the wait begins: earlier deaths don't matter. */
function createDeathCount(): (status: ChildStatus | undefined) => number {
  let before: number | null = null;
  return (status) => {
    if (status === undefined) return 0;
    before ??= status.deaths;
    return status.deaths - before;
  };
}

function hopelessness({ limitMs }: Wait, waitedMs: number, deaths: number): string | null {
  if (deaths >= HOPELESS_DEATHS) return `it exited ${deaths} times`;
  return waitedMs > limitMs ? `not within ${limitMs / 1000} s` : null;
}

function notReady(wait: Wait, reason: string, status: ChildStatus | undefined): TemperError {
  const place = status === undefined ? '.temper/logs' : `.temper/logs/${status.name}.jsonl`;
  return new TemperError(
    'EngineFailed',
    `${wait.for} did not become ready (${reason}); see the end of its log in ${place}`,
  );
}
