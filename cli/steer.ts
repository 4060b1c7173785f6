/** Telling a running workflow something: it needs the server, and for updates a worker. */
import { WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { TemperError } from '../core/failures.ts';
import { runWorkflowId } from '../core/queues.ts';
import { isPassing } from '../workers/connection.ts';
import { CommandFailed } from './errors.ts';
import { requireServer } from './server.ts';

/** An update waits for a worker to take it; without one it would wait for ever. */
const ANSWER_WITHIN_MS = 20_000;

export async function steerRun<T>(
  project: string,
  env: NodeJS.ProcessEnv,
  run: string,
  tell: (handle: WorkflowHandle) => Promise<T>,
): Promise<T> {
  const server = await requireServer(project, env);
  try {
    const handle = server.client.workflow.getHandle(runWorkflowId(run));
    return await server.client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () => tell(handle));
  } catch (error) {
    throw explain(run, error);
  } finally {
    await server.close();
  }
}

function explain(run: string, cause: unknown): unknown {
  if (cause instanceof WorkflowNotFoundError) {
    return new TemperError('BadConfig', `no run ${run} is under way on this server; see temper runs`, { cause });
  }
  if (cause instanceof WorkflowUpdateFailedError) {
    return new CommandFailed(`${run} refused: ${cause.cause?.message ?? cause.message}`, { cause });
  }
  if (isPassing(cause)) {
    return new CommandFailed(
      `${run} did not answer within ${ANSWER_WITHIN_MS / 1000} s (no worker takes its tasks?); see temper doctor`,
      { cause },
    );
  }
  return cause;
}
