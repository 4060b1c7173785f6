/** The position from which a run continues after a rollback, or after it was resumed: the store says where it is. */
import { ActivityFailure, isCancellation } from '@temporalio/workflow';

import type { Located, Prepared } from '../core/contract.ts';
import { branchOfStep } from '../core/lineage.ts';
import { isEvaluationDue } from '../core/plan-evaluation.ts';
import { policiesAtStart, positionAt, type RunPosition } from '../core/plan-step.ts';
import { findTypedFailure } from './endings.ts';
import type { Run } from './run.ts';
import type { PendingRollback } from './run-controls.ts';

/** A new branch after an older step. Where there can be none (its weights were removed), the run goes on as it was. */
export async function rollBack(run: Run, position: RunPosition, rollback: PendingRollback): Promise<RunPosition> {
  const { status, queues, controls } = run;
  status.waitFor('rollout', `go back to step ${rollback.step}`, queues.rollout);
  const located = await tryLocate(run, rollback);
  controls.rolledBack(rollback);
  if (located === null) return position;
  run.judging.recall(located.judging);
  status.setPosition(located);
  status.noteContinued();
  await status.record();
  // However many steps before it had nothing to train: on the new branch none has been tried.
  return toPosition(run, position.prepared, { ...located, emptySteps: 0 });
}

/** Where a run that had ended stood: on its newest branch, with all settings that were ever changed. */
export async function resumeFromStore(run: Run, prepared: Prepared): Promise<RunPosition> {
  const { activities, status, queues, controls } = run;
  status.waitFor('initialise', 'find where the run stands', queues.rollout);
  const located = await activities.locate({ run: controls.config.run, rollback: null });
  controls.restore(located.changes, located.amendments);
  run.judging.recall(located.judging);
  status.setPosition(located);
  if (controls.pendingRollback === null) status.noteContinued();
  else status.noteRollback(controls.pendingRollback);
  await status.record();
  return toPosition(run, prepared, located);
}

/** A run may have ended between a step and the evaluation that was due after it. */
export function isEvaluationMissing({ status, controls }: Run, { branch, step }: RunPosition): boolean {
  if (controls.pendingRollback !== null || !isEvaluationDue(controls.config, step)) return false;
  const { evals, lineage } = status.state;
  return branchOfStep(lineage, step) === branch && !evals.some((result) => result.step === step);
}

async function tryLocate({ activities, status, controls }: Run, rollback: PendingRollback): Promise<Located | null> {
  const { requestId, step } = rollback;
  try {
    return await activities.locate({ run: controls.config.run, rollback: { requestId, step } });
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    const { type, message } = findTypedFailure(error);
    status.note(`could not roll back to step ${step} (${type}: ${message}); the run continues unchanged`);
    return null;
  }
}

/** A branch begins with one policy for all; a run that goes on samples from what it would have sampled from. */
function toPosition({ config }: Run, prepared: Prepared, located: Located): RunPosition {
  const { branch, step, checkpoint, dealt, emptySteps, policies = policiesAtStart(config, checkpoint) } = located;
  return positionAt({ branch, prepared, step, checkpoint, policies, dealt, emptySteps });
}
