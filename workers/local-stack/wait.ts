/** Waits of a start: each has a name, a limit, and ends early where waiting is hopeless. */
import { setTimeout as sleep } from 'node:timers/promises';
import { TemperError } from '../../core/failures.ts';
import { workerName } from './children.ts';
import type { ChildStatus, StackEvent } from './events.ts';
import { LeashGone } from './leash-connection.ts';
import type { LeashConnection } from './leash-connection.ts';

export interface WaitOptions {
  readonly agentFile: string | null;
  readonly hasGpuWorker: boolean;
  readonly signal?: AbortSignal;
  readonly onEvent: (event: StackEvent) => void;
}

interface Wait {
  readonly child: string;
  readonly for: string;
  readonly limitMs: number;
}

const POLL_MS = 50;
const TELL_AFTER_MS = 1000;
/** A child that died so often before it was ever ready will not be mended by waiting. */
const HOPELESS_DEATHS = 4;

export async function waitForStack(
  connection: LeashConnection,
  options: WaitOptions,
  prepareNamespace: () => Promise<void>,
): Promise<void> {
  const worker = options.agentFile === null ? null : workerName(options.agentFile);
  // Imports alone took two minutes on a machine with eight times the work that it has cores for.
  const waits: Wait[] = [
    ...(options.hasGpuWorker ? [{ child: 'gpu-worker', for: 'the GPU worker', limitMs: 300_000 }] : []),
    ...(worker === null ? [] : [{ child: worker, for: 'the TypeScript worker', limitMs: 300_000 }]),
  ];
  const server = async () => {
    if (connection.stack.ownsServer)
      await waitForChild(
        { child: 'temporal-server', for: 'the Temporal server', limitMs: 60_000 },
        connection,
        options,
      );
    await prepareNamespace();
  };
  await Promise.all([server(), ...waits.map((wait) => waitForChild(wait, connection, options))]);
}

async function waitForChild(wait: Wait, connection: LeashConnection, { onEvent, signal }: WaitOptions): Promise<void> {
  const startedAt = Date.now();
  const countDeaths = createDeathCount();
  let toldAt = startedAt;
  for (;;) {
    signal?.throwIfAborted();
    if (connection.isLost()) throw new LeashGone('the local stack ended while it started');
    const status = statusOf(wait, connection);
    if (status?.state === 'ready') return;
    const waitedMs = Date.now() - startedAt;
    refuseHopeless(wait, waitedMs, countDeaths(status));
    if (Date.now() - toldAt >= TELL_AFTER_MS) {
      toldAt = Date.now();
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

/** Since the first status, which may be on its way when the wait begins: what died before is nobody's wait. */
function createDeathCount(): (status: ChildStatus | undefined) => number {
  let before: number | null = null;
  return (status) => {
    if (status === undefined) return 0;
    before ??= status.deaths;
    return status.deaths - before;
  };
}

function refuseHopeless(wait: Wait, waitedMs: number, deaths: number): void {
  if (deaths >= HOPELESS_DEATHS) throw notReady(wait, `it ended ${deaths} times`);
  if (waitedMs > wait.limitMs) throw notReady(wait, `not within ${wait.limitMs / 1000} s`);
}

function statusOf({ child }: Wait, connection: LeashConnection): ChildStatus | undefined {
  return connection.statuses().find(({ name }) => name === child);
}

function notReady(wait: Wait, reason: string): TemperError {
  return new TemperError(
    'EngineFailed',
    `${wait.for} did not become ready (${reason}); its last words are in .temper/logs/${wait.child}.jsonl`,
  );
}
