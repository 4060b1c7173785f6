/** Rolls back a running run by an update, and an ended run by starting its workflow again from the store. */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Position, RunConfig } from '../core/contract/contract.ts';
import { badConfig, WorkFailed } from '../core/contract/failures.ts';
import { applyChanges, findSettingsProblem } from '../core/rules/settings.ts';
import { openBranch, readAllChanges, requireUnprunedStep, requireWeights } from '../store/records/runs/lineage.ts';
import { findPosition } from '../store/records/runs/positions.ts';
import { requireRun } from '../store/records/runs/run-reader.ts';
import type { Store } from '../store/store.ts';
import { describeServerFailure } from '../workers/connection/connection.ts';
import { rollbackUpdate, type RollbackRequest } from '../workflows/messages.ts';
import type { Place } from './operation.ts';
import type { RolledBack } from './results.ts';
import { requireServer } from './server.ts';
import { parseSettings } from './settings.ts';
import { startRun } from './start-run.ts';
import { tellRun, type Rollback } from './steer-run.ts';

export async function rollBackRun(place: Place, { run, step, set, reason }: Rollback): Promise<RolledBack> {
  const settings = set.length === 0 ? null : parseSettings(set);
  const request: RollbackRequest = { step, settings, reason };
  const { project, requestId } = place;
  const store = await place.store();
  const { file } = await requireRun(store, run);
  if (file.loop !== undefined)
    throw badConfig(
      `${run} belongs to a script and cannot be rolled back; fork its checkpoint (backend.forkCheckpoint, or temper train AGENT --from ${run}@${step})`,
    );
  await requireUnprunedStep(store, run, step);
  const server = await requireServer(place);
  try {
    const answer = await tellRun(server.client, { storeId: await store.id(), run }, (handle) =>
      handle.executeUpdate(rollbackUpdate, { args: [request], updateId: requestId }),
    );
    if (answer !== null) return { run, kept: answer.step, undone: answer.from, first: answer.first, isAgain: false };
    const { step: finished, costs } = await checkEnded(store, file.config, request);
    const again = { requestId, step, finished, reason };
    const resume = { rollback: again, settings };
    await startRun(server.client, { store, config: file.config, project, resume, conflict: 'FAIL' });
    // The run opens the branch too. Done here as well, so that temper train sees it before a worker runs.
    await openBranch(store, run, { ...again, costs });
    return { run, kept: step, undone: finished, first: true, isAgain: true };
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

/** Checks for an ended run, as a running one makes them itself. Returns where it stands. */
async function checkEnded(store: Store, started: RunConfig, { step, settings }: RollbackRequest): Promise<Position> {
  const { run } = started;
  const position = await findPosition(store, run);
  const { step: last } = position;
  if (step > last)
    throw badConfig(
      `--step must be at most ${last}, the last finished step of ${run}, got ${step}; pass an earlier one`,
    );
  const config = applyChanges(started, (await readAllChanges(store, run)).changes);
  const complaint = settings === null ? null : findSettingsProblem(config, step, settings);
  if (complaint !== null) throw badConfig(complaint);
  const steps = settings?.steps ?? config.steps;
  if (step >= steps)
    throw badConfig(
      `${run} has ${steps} steps, so step ${step} leaves none to train; pass an earlier step, or --set steps=${step + 1} or more`,
    );
  await requireWeights(store, run, step);
  return position;
}
