/** The position from which a run continues after a rollback, or after it was resumed: the store says where it is. */
import { ActivityFailure, isCancellation } from '@temporalio/workflow';

import type { Located, Prepared } from '../core/contract.ts';
import { branchOfStep } from '../core/lineage.ts';
import { isEvaluationDue } from '../core/plan-evaluation.ts';
import { policiesAtStart, positionAt, type RunPosition } from '../core/plan-step.ts';
import { findTypedFailure } from './endings.ts';
import type { Run } from './run.ts';
import type { PendingRollback } from './run-controls.ts';

/** Starts a new branch after an older step. If that step's weights were removed, the run continues unchanged. */
export async function rollBack(run: Run, position: RunPosition, rollback: PendingRollback): Promise<RunPosition> {
  const { status, queues, controls } = run;
  status.waitFor('rollout', `go back to step ${rollback.step}`, queues.rollout);
  const located = await tryLocate(run, rollback);
  controls.rolledBack(rollback);
  if (located === null) return position;
  run.costs.recallJudging(located.judging);
  status.setPosition(located);
  status.noteContinued();
  await status.record();
  // Skipped steps of the old branch do not count: the new branch has not tried any.
  return toPosition(run, position.prepared, { ...located, emptySteps: 0 });
}

/** The position of an ended run: on its newest branch, with all settings that were changed. */
export async function resumeFromStore(run: Run, prepared: Prepared): Promise<RunPosition> {
  const { activities, status, queues, controls } = run;
  status.waitFor('initialise', 'find where the run stands', queues.rollout);
  const located = await activities.locate({ run: controls.config.run, rollback: null });
  controls.restore(located.changes, located.amendments);
  run.costs.recall(located.costs);
  run.costs.recallJudging(located.judging);
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

/** A new branch begins with one policy for all steps; a resumed run keeps the policies that it was going to use. */
function toPosition({ config }: Run, prepared: Prepared, located: Located): RunPosition {
  const { branch, step, checkpoint, dealt, emptySteps, policies = policiesAtStart(config, checkpoint) } = located;
  const { start, league, open } = located;
  return positionAt({
    ...(start && { start }),
    ...(league && { league }),
    branch,
    prepared,
    step,
    checkpoint,
    policies,
    dealt,
    open,
    emptySteps,
  });
}
