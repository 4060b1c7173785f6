/** Waits of a running workflow that are not its own: for workers that do not poll. */
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { tsToMs, type Timestamp } from '@temporalio/common/lib/time.js';
import proto from '@temporalio/proto';

export interface Waiting {
  readonly reason: string;
  /** Milliseconds since 1970, by the server's clock. */
  readonly since: number;
}

const { PendingActivityState, PendingWorkflowTaskState } = proto.temporal.api.enums.v1;
/** A task that lies longer in its queue has no worker: an idle one takes it at once. */
const TAKEN_WITHIN_MS = 5000;

/** Null if its workers are at work, or if it waits for a person or a timer. */
export function findWaiting(
  { taskQueue, raw }: WorkflowExecutionDescription,
  modelActivities: readonly string[],
  now: number,
): Waiting | null {
  const { pendingWorkflowTask: task } = raw;
  const isQueued = task?.state === PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED;
  const since = isQueued ? lyingSince(task.scheduledTime, now) : null;
  if (since !== null) return { reason: `no worker takes workflow tasks of the queue ${taskQueue}; start yours`, since };
  const activities = (raw.pendingActivities ?? []).filter(
    ({ activityType }) => !modelActivities.includes(activityType?.name ?? ''),
  );
  return (
    activities.map((activity) => findWaitingActivity(activity, taskQueue, now)).find((found) => found !== null) ?? null
  );
}

/** Later tries wait for their turn. */
function findWaitingActivity(
  { activityType, state, attempt, scheduledTime }: proto.temporal.api.workflow.v1.IPendingActivityInfo,
  taskQueue: string,
  now: number,
): Waiting | null {
  if (state !== PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED || attempt !== 1) return null;
  const since = lyingSince(scheduledTime, now);
  const what = `the activity ${activityType?.name ?? ''} of a workflow of the queue ${taskQueue}`;
  return since === null ? null : { reason: `no worker takes ${what}; start yours`, since };
}

function lyingSince(time: Timestamp | null | undefined, now: number): number | null {
  const since = time ? tsToMs(time) : now;
  return now - since > TAKEN_WITHIN_MS ? since : null;
}
