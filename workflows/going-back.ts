/** Where a run goes on after a rollback, or after it was started again: its store says where it stands. */
import { ActivityFailure, isCancellation } from '@temporalio/workflow';

import type { Located, Prepared } from '../core/contract.ts';
import { branchOfStep } from '../core/lineage.ts';
import { isEvaluationDue } from '../core/plan-evaluation.ts';
import { policiesAtStart, standAt, type RunPosition } from '../core/plan-step.ts';
import { crossing } from './endings.ts';
import type { Run } from './run.ts';
import type { RollbackTold } from './instructions.ts';

/** A new branch after an older step. Where there can be none (its weights were removed), the run goes on as it was. */
export async function rollBack(run: Run, position: RunPosition, told: RollbackTold): Promise<RunPosition> {
  const { board, queues, instructions } = run;
  board.waitFor('rollout', `go back to step ${told.step}`, queues.rollout);
  const located = await tryLocate(run, told);
  instructions.rolledBack(told);
  if (located === null) return position;
  run.judging.recall(located.judging);
  board.located(located);
  board.goingOn();
  await board.record();
  // However many steps before it had nothing to train: on the new branch none has been tried.
  return toPosition(run, position.prepared, { ...located, emptySteps: 0 });
}

/** Where a run that had ended stood: on its newest branch, with all settings that were ever changed. */
export async function goOn(run: Run, prepared: Prepared): Promise<RunPosition> {
  const { activities, board, queues, instructions } = run;
  board.waitFor('initialise', 'find where the run stands', queues.rollout);
  const located = await activities.locate({ run: instructions.config.run, rollback: null });
  instructions.recall(located.changes, located.amendments);
  run.judging.recall(located.judging);
  board.located(located);
  if (instructions.rollback === null) board.goingOn();
  else board.goingBack(instructions.rollback);
  await board.record();
  return toPosition(run, prepared, located);
}

/** A run may have ended between a step and the evaluation that was due after it. */
export function isEvaluationMissing({ board, instructions }: Run, { branch, step }: RunPosition): boolean {
  if (instructions.rollback !== null || !isEvaluationDue(instructions.config, step)) return false;
  const { evals, lineage } = board.state;
  return branchOfStep(lineage, step) === branch && !evals.some((result) => result.step === step);
}

async function tryLocate({ activities, board, instructions }: Run, told: RollbackTold): Promise<Located | null> {
  const { requestId, step } = told;
  try {
    return await activities.locate({ run: instructions.config.run, rollback: { requestId, step } });
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    const { type, message } = crossing(error);
    board.note(`could not roll back to step ${step} (${type}: ${message}); the run continues unchanged`);
    return null;
  }
}

/** A branch begins with one policy for all; a run that goes on samples from what it would have sampled from. */
function toPosition({ config }: Run, prepared: Prepared, located: Located): RunPosition {
  const { branch, step, checkpoint, dealt, emptySteps, policies = policiesAtStart(config, checkpoint) } = located;
  return standAt({ branch, prepared, step, checkpoint, policies, dealt, emptySteps });
}
