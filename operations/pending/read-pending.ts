/** Pending activities of a run, from the server: attempts, failures and waits. The store does not have them. */
import { tsToMs } from '@temporalio/common/lib/time.js';
import type { WorkflowExecutionDescription, WorkflowExecutionStatusName } from '@temporalio/client';

import { runWorkflowId } from '../../core/names/queues.ts';
import { findStoreId } from '../../store/bytes/store-id.ts';
import type { Store } from '../../store/store.ts';
import type { TemporalClient } from '../../workers/connection/connection.ts';
import { isScheduled, type RawPending } from '../../workers/connection/pending-activity.ts';
import { countPollers } from '../../workers/connection/pollers.ts';
import type { PendingActivity } from './pending-activity.ts';
import { describePending, describeWorkflowTask } from './pending-text.ts';

type RawDescription = WorkflowExecutionDescription['raw'];

/** A run and its store. */
export interface PendingOf {
  readonly store: Pick<Store, 'id' | 'read'>;
  readonly run: string;
}

/** Empty if nothing is pending or the server does not answer in time. */
export async function readPending(
  server: TemporalClient,
  { store, run }: PendingOf,
  withinMs: number,
): Promise<PendingActivity[]> {
  try {
    const storeId = await findStoreId(store);
    const seen = storeId === null ? null : await lookAt(server, runWorkflowId(storeId, run), withinMs);
    return seen?.pending ?? [];
  } catch {
    return [];
  }
}

export interface SeenWorkflow {
  readonly status: WorkflowExecutionStatusName;
  readonly pending: PendingActivity[];
}

/** Throws if the server does not answer in time, or does not know the workflow. */
export function lookAt(server: TemporalClient, workflowId: string, withinMs: number): Promise<SeenWorkflow> {
  return server.client.withDeadline(Date.now() + withinMs, async () => {
    const { raw, status } = await server.client.workflow.getHandle(workflowId).describe();
    const activities = await Promise.all((raw.pendingActivities ?? []).map((each) => readActivity(server, each)));
    return { status: status.name, pending: [...activities, ...(await readWorkflowTask(server, raw))] };
  });
}

async function readActivity(server: TemporalClient, raw: RawPending): Promise<PendingActivity> {
  const queue = raw.activityOptions?.taskQueue?.name || null;
  const waits = !raw.lastStartedTime || isScheduled(raw);
  const pollers = waits && queue !== null ? await countPollers(server, queue, 'activity') : null;
  return describePending(raw, queue, pollers, Date.now());
}

/** Workflow tasks take milliseconds: a longer wait means no worker, or code that fails. */
const SLOW_TASK_MS = 5000;

/** A wait of the workflow task itself: no worker, or code that keeps failing. */
async function readWorkflowTask(server: TemporalClient, raw: RawDescription): Promise<PendingActivity[]> {
  const { pendingWorkflowTask: task } = raw;
  const queue = raw.executionConfig?.taskQueue?.name;
  const scheduled = task?.originalScheduledTime ?? task?.scheduledTime;
  if (!task || !scheduled || !queue || Date.now() - tsToMs(scheduled) < SLOW_TASK_MS) return [];
  const pollers = await countPollers(server, queue, 'workflow');
  return [describeWorkflowTask(queue, pollers, task.attempt ?? 1, new Date(tsToMs(scheduled)).toISOString())];
}
