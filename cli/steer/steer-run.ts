/** Updates and cancellation of a running workflow. Both need the server; updates also need a worker. */
import { WorkflowNotFoundError, WorkflowUpdateFailedError, type Client, type WorkflowHandle } from '@temporalio/client';
import { badConfig } from '../../core/failures.ts';
import { runWorkflowId } from '../../core/queues.ts';
import { isPassing } from '../../workers/connection/connection.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { WorkFailed, UsageError } from '../command-line/errors.ts';
import { ANSWER_WITHIN_MS, requireServer, type ProjectPlace } from '../connections/server.ts';
import { findStoreId } from '../connections/store-id.ts';

/** The project's store, unless another one was opened. */
export interface SteeredPlace extends ProjectPlace {
  readonly store?: Store;
}

export async function steerRun<T>(
  place: SteeredPlace,
  run: string,
  tell: (handle: WorkflowHandle) => Promise<T>,
): Promise<T> {
  const server = await requireServer(place);
  try {
    const store = place.store ?? (await openProjectStore(place.project, place.env));
    const storeId = await findStoreId(store);
    const answer = storeId === null ? null : await tellRun(server.client, { storeId, run }, tell);
    if (answer !== null) return answer;
    throw badConfig(
      `no run ${run} of the store ${store.uri} is running on this server; see temper runs, or continue it with temper train or temper rollback`,
    );
  } finally {
    await server.close();
  }
}

/** Null if no run of this name is running. */
export async function tellRun<T>(
  client: Client,
  { storeId, run }: { storeId: string; run: string },
  tell: (handle: WorkflowHandle) => Promise<T>,
): Promise<T | null> {
  try {
    const handle = client.workflow.getHandle(runWorkflowId(storeId, run));
    return await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () => tell(handle));
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw explain(run, error);
  }
}

function explain(run: string, cause: unknown): unknown {
  if (cause instanceof WorkflowUpdateFailedError) {
    // The validator's message; a failure without one comes from the run itself.
    const refusal = cause.cause?.message;
    return refusal === undefined ? new WorkFailed(cause.message, { cause }) : new UsageError(refusal, { cause });
  }
  if (isPassing(cause)) {
    return new WorkFailed(
      `${run} did not answer within ${ANSWER_WITHIN_MS / 1000} s (is a worker running?); see temper doctor`,
      { cause },
    );
  }
  return cause;
}
