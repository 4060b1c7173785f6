/** The position from which a run continues after a rollback, or after it was resumed: the store says where it is. */
import { ActivityFailure, isCancellation } from '@temporalio/workflow';

import type { Located, Prepared } from '../core/contract/contract.ts';
import { branchOfStep } from '../core/names/lineage.ts';
import { isEvaluationDue } from '../core/plan/evaluation.ts';
import { restorePosition, type RunPosition } from '../core/plan/step.ts';
import { findTypedFailure } from './endings.ts';
import type { Run } from './run.ts';
import type { PendingRollback } from './run-controls.ts';

/** Starts a new branch after an older step. If that step's weights were removed, the run continues unchanged. */
export async function rollBack(run: Run, position: RunPosition, rollback: PendingRollback): Promise<RunPosition> {
  const { status, queues, controls } = run;
  status.waitFor('rollout', `go back to step ${rollback.step}`, queues.rollout);
  await status.settled();
  controls.showCosts();
  const located = await tryLocate(run, rollback);
  controls.rolledBack(rollback);
  if (located === null) return position;
  status.setPosition(located);
  status.noteContinued();
  await status.record();
  return restorePosition(position.prepared, located);
}

/** The position of an ended run: on its newest branch, with all settings that were changed. */
export async function resumeFromStore(run: Run, prepared: Prepared): Promise<RunPosition> {
  const { activities, status, queues, controls } = run;
  status.waitFor('initialise', 'find where the run stands', queues.rollout);
  const located = await activities.locate({ run: controls.config.run, rollback: null });
  controls.restore(located.changes, located.amendments);
  run.costs.recall(located.costs);
  status.setPosition(located);
  if (controls.pendingRollback === null) status.noteContinued();
  else status.noteRollback(controls.pendingRollback);
  await status.record();
  return restorePosition(prepared, located);
}

/** A run may have ended before the evaluation after its step was counted. One that was played is not played again. */
export function isEvaluationMissing({ status, controls }: Run, { branch, step }: RunPosition): boolean {
  if (controls.pendingRollback !== null || !(step === 0 || isEvaluationDue(controls.config, step))) return false;
  return branchOfStep(status.state.lineage, step) === branch;
}

async function tryLocate(
  { activities, status, controls, costs }: Run,
  rollback: PendingRollback,
): Promise<Located | null> {
  const { requestId, step } = rollback;
  try {
    return await activities.locate({ run: controls.config.run, rollback: { requestId, step, costs: costs.carried() } });
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    const { type, message } = findTypedFailure(error);
    status.note(`could not roll back to step ${step} (${type}: ${message}); the run continues unchanged`);
    return null;
  }
}
