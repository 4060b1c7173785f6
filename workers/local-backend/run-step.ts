/** Trains a step of a script's loop by a separate workflow. */
import { WorkflowFailedError } from '@temporalio/client';
import type { TrainResult } from '../../core/contract.ts';
import { FAILURES, TemperError, type FailureType } from '../../core/failures.ts';
import { storeQueue, trainWorkflowId } from '../../core/queues.ts';
import type { OpenBackend } from '../../sdk/loop/backend.ts';
import type { trainStep } from '../../workflows/train-step.ts';
import { describeServerFailure, patiently, type TemporalClient } from '../connection/connection.ts';

type Step = Parameters<OpenBackend['runStep']>[0];

/** The step's id is its workflow's id, so concurrent calls join it. Only the store has its result. */
export async function runStep(
  { client }: TemporalClient,
  { storeId, queues }: { storeId: string; queues: { workflows: string; gpu: string } },
  { project, model, work }: Step,
): Promise<TrainResult> {
  const step = work.kind === 'train' ? work.input.step : 0;
  const title = `${project}.${model}: step ${step}`;
  try {
    const handle = await patiently(
      () =>
        client.workflow.start<typeof trainStep>('trainStep', {
          workflowId: trainWorkflowId(storeId, project, model, step),
          taskQueue: storeQueue(storeId, queues.workflows),
          args: [{ project, gpuQueue: storeQueue(storeId, queues.gpu), work }],
          workflowIdConflictPolicy: 'USE_EXISTING',
          workflowIdReusePolicy: 'ALLOW_DUPLICATE',
          staticSummary: title,
        }),
      { limitMs: 30_000 },
    );
    return await patiently(() => handle.result(), { limitMs: null });
  } catch (error) {
    throw explain(title, error);
  }
}

/** The innermost cause is what a person can act on: Temporal wraps it twice. */
function explain(title: string, error: unknown): unknown {
  const serverFailure = describeServerFailure(error);
  if (serverFailure !== null) return new TemperError('EngineFailed', serverFailure, { cause: error });
  if (!(error instanceof WorkflowFailedError)) return error;
  let cause: Error = error;
  while (cause.cause instanceof Error) cause = cause.cause;
  const named = (cause as { type?: unknown }).type;
  const type = typeof named === 'string' && named in FAILURES ? (named as FailureType) : 'TrainerFailed';
  return new TemperError(type, `${title} failed: ${cause.message}`, { cause: error });
}
