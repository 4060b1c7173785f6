/** Validators of updates: synchronous, they read and throw what the person is told. What they refuse is in no history. */
import type { RunConfig } from '../core/contract.ts';
import { findSettingsProblem } from '../core/settings.ts';
import type { Board } from './board.ts';
import type { Judging } from './judging.ts';
import type { PauseRequest, RollbackRequest, SetRequest, StopRequest } from './messages.ts';

/** What was told so far, and what follows from it. */
interface Instructed {
  readonly told: { readonly stop: unknown; readonly pause: unknown };
  readonly wanted: RunConfig;
  readonly budgetComplaint: string | null;
  readonly isEnding: boolean;
  readonly lastKept: number;
}

interface Facts {
  instructions: Instructed;
  board: Board;
  judging: Judging;
}

const MAX_REASON_LENGTH = 500;

export function createRefusals(facts: Facts) {
  const { instructions } = facts;
  return {
    stop: (request: StopRequest): void => {
      refuseBadReason(request);
      refuseEnding(facts, 'stopped');
    },
    pause: (request: PauseRequest): void => {
      refuseBadReason(request);
      refuseStopping(facts, 'paused');
    },
    resume: (): void => {
      refuseEnding(facts, 'resumed');
      refuseOverBudget(facts);
    },
    set: (request: SetRequest): void => {
      refuseBadReason(request);
      refuseStopping(facts, 'changed');
      refuseSettings(facts, request.settings, instructions.lastKept);
    },
    rollback: (request: RollbackRequest): void => {
      refuseBadReason(request);
      refuseStopping(facts, 'rolled back');
      refuseBadStep(facts, request.step);
      if (request.settings !== null) refuseSettings(facts, request.settings, request.step);
      refuseNothingLeft(facts, request);
    },
  };
}

/** Anybody may send an update: nothing of it is what its type says until it was looked at. */
function refuseBadReason(request: { reason: unknown } | undefined): void {
  const reason = request?.reason;
  if (reason === null || (typeof reason === 'string' && reason.length <= MAX_REASON_LENGTH)) return;
  throw new Error(`a reason must be null or text of at most ${MAX_REASON_LENGTH} characters; shorten it`);
}

function refuseEnding({ instructions, board }: Facts, what: string): void {
  const { run, step } = board.state;
  if (!instructions.isEnding) return;
  throw new Error(
    `${run} is ending after step ${step} and can no longer be ${what}; wait until it ends, then run temper show ${run}`,
  );
}

function refuseStopping(facts: Facts, what: string): void {
  const { instructions, board } = facts;
  refuseEnding(facts, what);
  if (!instructions.told.stop) return;
  throw new Error(
    `${board.state.run} is stopping after step ${board.lastBegun} and cannot be ${what}; wait until it ends, then continue with temper rollback`,
  );
}

/** Resumed without more to spend, it would only pause again. */
function refuseOverBudget({ instructions, board }: Facts): void {
  const complaint = instructions.budgetComplaint;
  if (complaint === null || instructions.told.pause === null) return;
  const { run } = board.state;
  throw new Error(
    `${run} cannot be resumed: ${complaint}; raise the limit first with temper set ${run} max-judge-usd=N`,
  );
}

function refuseSettings({ instructions, board, judging }: Facts, settings: unknown, stepsDone: number): void {
  if (typeof settings !== 'object' || settings === null)
    throw new Error(`the settings of ${board.state.run} must be an object; pass names and numbers`);
  const complaint = findSettingsProblem(instructions.wanted, stepsDone, settings);
  if (complaint !== null) throw new Error(complaint);
  if ('maxJudgeUsd' in settings && judging.isCostUnknown)
    throw new Error(
      `maxJudgeUsd has no effect on ${board.state.run}: the price of its judge is unknown; set the prices in ruler in the agent's file`,
    );
}

function refuseBadStep({ instructions, board }: Facts, step: unknown): void {
  const { run, phase } = board.state;
  if (phase === 'prepare' || phase === 'initialise')
    throw new Error(
      `${run} has no step to roll back to yet (phase ${phase}); wait for its first step, or run temper cancel ${run}`,
    );
  const last = instructions.lastKept;
  if (typeof step === 'number' && Number.isSafeInteger(step) && step >= 0 && step <= last) return;
  throw new Error(
    `the step to roll back to must be a whole number from 0 to ${last}, the last finished step of ${run}, got ${JSON.stringify(step)}; pass one of these`,
  );
}

/** A run that has no step left to train after going back would only end. */
function refuseNothingLeft({ instructions, board }: Facts, { step, settings }: RollbackRequest): void {
  const steps = settings?.steps ?? instructions.wanted.steps;
  if (step < steps) return;
  throw new Error(
    `${board.state.run} has ${steps} steps and none is left after step ${step}; roll back to an earlier step, or pass --set steps=${step + 1} or more`,
  );
}
