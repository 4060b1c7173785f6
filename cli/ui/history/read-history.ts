/** Reads a run's lanes from the histories of its workflow that a Temporal server still has. */
import { WorkflowNotFoundError, type WorkflowExecutionInfo } from '@temporalio/client';

import { runWorkflowId } from '../../../core/queues.ts';
import type { LanesView } from '../../../views/api/run-views.ts';
import { isPassing, type TemporalClient } from '../../../workers/connection/connection.ts';
import { readExecution, type Execution } from './execution.ts';
import { toLanes } from './history-lanes.ts';

const ANSWER_WITHIN_MS = 5000;
/** A run continues as new again and again: the newest executions are read, and the store tells of what was before. */
const MAX_EXECUTIONS = 20;
const MAX_EVENTS = 30_000;
/** Executions in memory; each is some kilobytes. */
const MAX_KEPT = 500;

export type ReadHistory = (run: string) => Promise<LanesView | null>;

/** Null where the server does not answer, or has nothing of the run any more. An execution that has ended is read once. */
export function createHistoryReader({ client }: Pick<TemporalClient, 'client'>, storeId: string): ReadHistory {
  const ended = new Map<string, Execution>();

  return async (run) => {
    const workflowId = runWorkflowId(storeId, run);
    try {
      const executions = await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () => readAll(workflowId));
      return executions.length === 0 ? null : toLanes(executions);
    } catch (error) {
      if (error instanceof WorkflowNotFoundError || isPassing(error)) return null;
      throw error;
    }
  };

  async function readAll(workflowId: string): Promise<Execution[]> {
    const found: Execution[] = [];
    let events = 0;
    for await (const info of client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
      events += info.historyLength;
      if (found.length >= MAX_EXECUTIONS || (events > MAX_EVENTS && found.length > 0)) break;
      found.unshift(await readOne(info));
    }
    return found;
  }

  async function readOne({ workflowId, runId, status }: WorkflowExecutionInfo): Promise<Execution> {
    const known = ended.get(runId);
    if (known !== undefined) return known;
    const handle = client.workflow.getHandle(workflowId, runId);
    const isRunning = status.name === 'RUNNING';
    const pending = isRunning ? ((await handle.describe()).raw.pendingActivities ?? []) : [];
    const { events } = await handle.fetchHistory();
    const execution = readExecution(events ?? [], pending);
    if (!isRunning) keep(runId, execution);
    return execution;
  }

  function keep(runId: string, execution: Execution): void {
    ended.set(runId, execution);
    const oldest = ended.size > MAX_KEPT ? ended.keys().next().value : undefined;
    if (oldest !== undefined) ended.delete(oldest);
  }
}
