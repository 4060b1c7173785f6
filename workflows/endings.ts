/** Ends of a run before its last step. */
import { ApplicationFailure, isCancellation, TemporalFailure } from '@temporalio/workflow';

import { isAwaited } from '../core/rules/external-rewards.ts';
import { describeRemedy, describeUnused, ENDED_EARLY } from '../core/reports/learning-signal.ts';
import { EMPTY_STEPS_LIMIT, type RunPosition } from '../core/plan/step.ts';
import type { Run } from './run.ts';
import type { RunStatus } from './run-status.ts';

const MAX_FAILURE_LENGTH = 2000;
/** Steps in a row of which every attempt failed. */
const BROKEN_STEPS_LIMIT = 2;

/**
 * An agent that fails at every attempt is broken, whatever was learned before: more steps would only cost more. Where
 * people give the rewards, attempts without one count as failed, and they may need more than two steps.
 */
export function failIfBroken({ status, controls }: Run): void {
  const { judge, steps } = controls.config;
  const broken = status.brokenSteps;
  if (isAwaited(judge) || broken < Math.min(BROKEN_STEPS_LIMIT, steps)) return;
  const { run, step } = status.state;
  const when = broken === 1 ? `step ${step}` : `the last ${broken} steps`;
  throw ApplicationFailure.nonRetryable(
    `every attempt of ${when} failed; fix the error of the agent (temper ui shows it), then go back with temper rollback ${run} --step ${step - broken}`,
    'AgentFailed',
  );
}

/**
 * A run may not continue for ever with steps that train nothing. One that learned before keeps its result; one that never
 * trained a step is a mistake, and fails with what to change.
 */
export function isLearningOver(status: RunStatus, { emptySteps, parent }: RunPosition): boolean {
  if (emptySteps < EMPTY_STEPS_LIMIT) return false;
  const facts = `${emptySteps} steps in a row were skipped; in the last one, ${describeUnused(status.lastUnused)}`;
  if (parent.step > 0) {
    status.note(
      `${ENDED_EARLY}${facts}; more steps like these change nothing; the result is checkpoint ${parent.step}`,
    );
    return true;
  }
  throw ApplicationFailure.nonRetryable(
    `run ${status.state.run} learned nothing: ${facts}; try ${describeRemedy(status.lastUnused)}`,
    'BadConfig',
  );
}

/**
 * Writes the run's end and throws it. Only Temporal's failures end a run; continue-as-new passes through, and a bug in
 * this code fails the workflow's task, which waits for a worker without the bug.
 */
export async function failRun(status: RunStatus, error: unknown): Promise<never> {
  if (!(error instanceof TemporalFailure)) throw error;
  if (isCancellation(error)) {
    await status.closeFailed('cancelled', null);
    throw error;
  }
  const { type, message } = findTypedFailure(error);
  await status.closeFailed('failed', `${type}: ${message}`.slice(0, MAX_FAILURE_LENGTH));
  throw ApplicationFailure.create({ type, message, nonRetryable: true, cause: error });
}

/** The outermost failure that names a boundary: below it are the causes that a worker saw, above it Temporal's wrapping. */
export function findTypedFailure(error: Error): { type: string; message: string } {
  if (error instanceof ApplicationFailure) return { type: error.type ?? error.name, message: error.message };
  return error.cause instanceof Error ? findTypedFailure(error.cause) : { type: error.name, message: error.message };
}
