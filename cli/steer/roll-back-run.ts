/** Rolls back a running run by an update, and an ended run by starting its workflow again from the store. */
import { randomUUID } from 'node:crypto';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { RunConfig } from '../../core/contract.ts';
import { applyChanges, findSettingsProblem } from '../../core/settings.ts';
import {
  findLastStep,
  openBranch,
  readAllChanges,
  requireUnprunedStep,
  requireWeights,
} from '../../store/records/lineage.ts';
import { requireRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { describeServerFailure } from '../../workers/connection/connection.ts';
import { rollbackUpdate, type RollbackRequest } from '../../workflows/messages.ts';
import { WorkFailed, UsageError } from '../command-line/errors.ts';
import { requireServer, type ProjectPlace } from '../connections/server.ts';
import { startRun } from '../session/start-run.ts';
import { tellRun } from './steer-run.ts';

interface Rollback extends RollbackRequest {
  readonly run: string;
  /** The same request again goes back no second time; absent: a request of its own. */
  readonly requestId?: string | undefined;
}

export interface RolledBack {
  readonly kept: number;
  /** Last finished step. */
  readonly undone: number;
  readonly first: boolean;
  /** True if the run had ended and its workflow was started again. */
  readonly isAgain: boolean;
}

export async function rollBackRun(
  store: Store,
  { project, env }: ProjectPlace,
  { run, requestId = randomUUID(), ...request }: Rollback,
): Promise<RolledBack> {
  const { file } = await requireRun(store, run);
  if (file.loop !== undefined)
    throw new UsageError(
      `${run} belongs to a script and cannot be rolled back; fork its checkpoint (backend.forkCheckpoint, or temper fork ${run}@${request.step})`,
    );
  await requireUnprunedStep(store, run, request.step);
  const server = await requireServer({ project, env });
  try {
    const answer = await tellRun(server.client, { storeId: await store.id(), run }, (handle) =>
      handle.executeUpdate(rollbackUpdate, { args: [request], updateId: requestId }),
    );
    if (answer !== null) return { kept: answer.step, undone: answer.from, first: answer.first, isAgain: false };
    const finished = await checkEnded(store, file.config, request);
    const rollback = { requestId, step: request.step, finished, reason: request.reason };
    const goOn = { rollback, settings: request.settings };
    await startRun(server.client, { store, config: file.config, project, goOn, conflict: 'FAIL' });
    // The run opens the branch too. Done here as well, so that temper train sees it before a worker runs.
    await openBranch(store, run, rollback);
    return { kept: request.step, undone: finished, first: true, isAgain: true };
  } catch (cause) {
    const serverFailure = describeServerFailure(cause);
    if (serverFailure !== null) throw new WorkFailed(serverFailure, { cause });
    if (!(cause instanceof WorkflowExecutionAlreadyStartedError)) throw cause;
    throw new WorkFailed(`${run} was started by another command at the same time; run this command again`, {
      cause,
    });
  } finally {
    await server.close();
  }
}

export function describeRollback(run: string, { kept, undone, isAgain, first }: RolledBack): string {
  const told = first
    ? `${run} goes back from step ${undone} to step ${kept}`
    : `${run} is already going back to step ${kept}`;
  const again = isAgain ? '; if no worker is running, start temper train or temper dev --agent FILE' : '';
  return `${told}; see temper show ${run} for its branch${again}`;
}

/** Checks for an ended run, as a running one makes them itself. Returns the last finished step. */
async function checkEnded(store: Store, started: RunConfig, { step, settings }: RollbackRequest): Promise<number> {
  const { run } = started;
  const last = await findLastStep(store, run);
  if (step > last)
    throw new UsageError(
      `--step must be at most ${last}, the last finished step of ${run}, got ${step}; pass an earlier one`,
    );
  const config = applyChanges(started, (await readAllChanges(store, run)).changes);
  const complaint = settings === null ? null : findSettingsProblem(config, step, settings);
  if (complaint !== null) throw new UsageError(complaint);
  const steps = settings?.steps ?? config.steps;
  if (step >= steps)
    throw new UsageError(
      `${run} has ${steps} steps, so step ${step} leaves none to train; pass an earlier step, or --set steps=${step + 1} or more`,
    );
  await requireWeights(store, run, step);
  return last;
}
