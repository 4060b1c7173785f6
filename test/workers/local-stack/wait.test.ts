import { expect, it } from 'vitest';
import type { ChildStatus, StackEvent } from '../../../workers/events.ts';
import type { DaemonConnection } from '../../../workers/local-stack/daemon-connection.ts';
import { waitForStack } from '../../../workers/local-stack/wait.ts';

const gpuWorker = (state: ChildStatus['state'], deaths: number): ChildStatus => ({
  name: 'gpu-worker',
  agentFile: null,
  state,
  pid: 7,
  deaths,
});

/** Tells these statuses, one with each look. */
function connection(told: readonly (readonly ChildStatus[])[]): DaemonConnection {
  let looks = 0;
  const stack = { ownsServer: false } as DaemonConnection['stack'];
  return {
    stack,
    adopted: true,
    statuses: () => told[Math.min(looks++, told.length - 1)] ?? [],
    isLost: () => false,
    onLost: () => undefined,
    release: async () => ({ others: 0, agents: [] }),
  };
}

const wait = (told: readonly (readonly ChildStatus[])[]) =>
  waitForStack(
    connection(told),
    { agentFile: null, hasGpuWorker: true, onEvent: (_event: StackEvent) => undefined },
    async () => undefined,
  );

it('waits for a child that died often before anybody waited for it, though its status comes late', async () => {
  await wait([[], [gpuWorker('restarting', 12)], [gpuWorker('starting', 12)], [gpuWorker('ready', 12)]]);
});

it('gives up on one that dies again and again meanwhile', async () => {
  const deaths = [12, 13, 14, 15, 16].map((count) => [gpuWorker('restarting', count)]);
  await expect(wait([[], ...deaths])).rejects.toThrow(/the GPU worker did not become ready \(it exited 4 times\)/);
});
