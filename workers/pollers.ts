/** Who listens on a task queue: a queue that nobody polls waits in silence, the commonest reason for a run that stands still. */
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

export async function countPollers(
  { connection, namespace }: TemporalClient,
  queue: string,
  kind: keyof typeof QUEUE_TYPES,
): Promise<number> {
  const { pollers } = await connection.workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: queue },
    taskQueueType: QUEUE_TYPES[kind],
  });
  return pollers.filter(
    ({ lastAccessTime }) => lastAccessTime && Date.now() - tsToMs(lastAccessTime) < POLLED_WITHIN_MS,
  ).length;
}
