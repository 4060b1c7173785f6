/**
 * The order of model activities that a workflow started together: their tasks arrive in any order, and identical requests
 * are told apart by the order in which they are asked. The server numbers activities as the workflow's code starts them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { clientOf, type TemporalServer } from './temporal-server.ts';

interface Execution {
  readonly workflowId: string;
  readonly runId: string;
}

/** Resolves once each earlier activity of these types that is still pending has gone on. */
export type InOrder = (execution: Execution, activityId: string, types: readonly string[]) => Promise<void>;

/** For an earlier activity whose task is lost with the worker that had it. */
const LONGEST_WAIT_MS = 2000;
const LOOK_MS = 20;

export function createOrder(server: TemporalServer): InOrder {
  const client = clientOf(server);
  /** Numbers of the activities that went on, by run id. */
  const passed = new Map<string, Set<number>>();
  return async ({ workflowId, runId }, activityId, types) => {
    const number = Number(activityId);
    // A workflow may name its activities itself.
    if (!Number.isSafeInteger(number)) return;
    const before = passed.get(runId) ?? new Set();
    passed.set(runId, before);
    if (number > 1 && !before.has(number - 1)) {
      const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
      const earlier = (raw.pendingActivities ?? [])
        .filter(({ activityType }) => types.includes(activityType?.name ?? ''))
        .map((pending) => Number(pending.activityId))
        .filter((each) => each < number);
      const until = performance.now() + LONGEST_WAIT_MS;
      while (earlier.some((each) => !before.has(each)) && performance.now() < until) await sleep(LOOK_MS);
    }
    before.add(number);
  };
}
