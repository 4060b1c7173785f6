/** Lists the pollers of a task queue: a queue without any waits silently, the most common reason for a stuck run. */
import { tsToMs } from '@temporalio/common/lib/time.js';
import proto from '@temporalio/proto';
import type { TemporalClient } from './connection.ts';

const { TaskQueueType } = proto.temporal.api.enums.v1;
const QUEUE_TYPES = {
  workflow: TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
  activity: TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
} as const;
/** A poll lasts a minute; the server remembers dead pollers for five. */
const POLLED_WITHIN_MS = 70_000;

type QueueKind = keyof typeof QUEUE_TYPES;

export interface Poller {
  /** `PID@HOST` by default. */
  readonly identity: string;
  readonly polledAgoMs: number;
}

/** Those of the last five minutes, the dead among them. */
export async function readPollers(
  { connection, namespace }: TemporalClient,
  queue: string,
  kind: QueueKind,
): Promise<Poller[]> {
  const { pollers } = await connection.workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: queue },
    taskQueueType: QUEUE_TYPES[kind],
  });
  return pollers.flatMap(({ identity, lastAccessTime }) =>
    lastAccessTime ? { identity: identity ?? '', polledAgoMs: Date.now() - tsToMs(lastAccessTime) } : [],
  );
}

export async function countPollers(server: TemporalClient, queue: string, kind: QueueKind): Promise<number> {
  const pollers = await readPollers(server, queue, kind);
  return pollers.filter(({ polledAgoMs }) => polledAgoMs < POLLED_WITHIN_MS).length;
}
