/** The updates and queries of a run, and the validators that refuse updates. The command line imports the definitions. */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';

import type { RunConfig, RunState, SettingChange } from '../core/contract/contract.ts';
import type { ExceededBudget } from '../core/rules/costs.ts';
import { REWARDS_SIGNAL } from '../core/rules/external-rewards.ts';
import { findSettingsProblem, type Settings } from '../core/rules/settings.ts';
import type { RunStatus } from './run-status.ts';

const MAX_REASON_LENGTH = 500;

export interface StopRequest {
  /** Shown with the run; null where the person gave none. */
  reason: string | null;
}

export interface StopAnswer {
  /** The step after which the run ends: the one in progress, or the last that finished. */
  afterStep: number;
  /** False where an earlier stop had been accepted already. */
  first: boolean;
}

export interface PauseRequest {
  reason: string | null;
}

export interface PauseAnswer {
  /** The step after which nothing moves: the one in progress, or the last that finished. */
  afterStep: number;
  since: string;
  /** False where the run was paused already. */
  first: boolean;
}

export interface ResumeAnswer {
  /** False where the run was not paused. */
  first: boolean;
}

export interface SetRequest {
  settings: Settings;
  reason: string | null;
}

export interface SetAnswer {
  /** Empty where all of it was so already. */
  changes: SettingChange[];
}

export interface RollbackRequest {
  /** The last step that is kept. */
  step: number;
  /** Set together with it; null: as they are. */
  settings: Settings | null;
  reason: string | null;
}

export interface RollbackAnswer {
  /** The last step that is kept, and the one that was finished last. */
  step: number;
  from: number;
  /** False if this was requested before and nothing has been finished since. */
  first: boolean;
}

/** Finishes the step in progress, keeps the result and ends. A repeated update, here and below, changes nothing. */
export const stopUpdate = defineUpdate<StopAnswer, [StopRequest]>('stop');

/** Finishes the step in progress, then begins none until resumed. */
export const pauseUpdate = defineUpdate<PauseAnswer, [PauseRequest]>('pause');
export const resumeUpdate = defineUpdate<ResumeAnswer>('resume');

/** Other settings from the next step's plan on, until they are set again. */
export const setUpdate = defineUpdate<SetAnswer, [SetRequest]>('set');

/** Gives up the step in progress, goes back to a finished step, and trains the following steps again on a new branch. */
export const rollbackUpdate = defineUpdate<RollbackAnswer, [RollbackRequest]>('rollback');

/** Rewards were given from outside: a run that waits for them looks into the store. It may be lost, and sent again. */
export const rewardsSignal = defineSignal(REWARDS_SIGNAL);
/** To a workflow that delivers to a target: the run was started again, so that it looks once more before it ends. */
export const runResumedSignal = defineSignal('runResumed');

/** The run's state now, with what it waits for. Works while a worker lives; `state.json` works always. */
export const progressQuery = defineQuery<RunState>('progress');

/** The part of `RunControls` that validators read. */
interface Controls {
  readonly requested: { readonly stop: unknown; readonly pause: unknown };
  readonly requestedConfig: RunConfig;
  readonly exceeded: ExceededBudget | null;
  readonly isEnding: boolean;
  readonly lastKept: number;
}

interface Facts {
  controls: Controls;
  status: RunStatus;
}

/** Validators of updates: synchronous, they throw the error that the sender sees. A refused update is in no history. */
export function createValidators(facts: Facts) {
  const { controls } = facts;
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
      refuseSettings(facts, request.settings, controls.lastKept);
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

function refuseEnding({ controls, status }: Facts, what: string): void {
  const { run, step } = status.state;
  if (!controls.isEnding) return;
  throw new Error(
    `${run} is ending after step ${step} and can no longer be ${what}; wait until it ends, then run temper show ${run}`,
  );
}

function refuseStopping(facts: Facts, what: string): void {
  const { controls, status } = facts;
  refuseEnding(facts, what);
  if (!controls.requested.stop) return;
  throw new Error(
    `${status.state.run} is stopping after step ${status.lastBegun} and cannot be ${what}; wait until it ends, then continue with temper rollback`,
  );
}

/** Resumed without more to spend, it would only pause again. */
function refuseOverBudget({ controls, status }: Facts): void {
  const { exceeded } = controls;
  if (exceeded === null || controls.requested.pause === null) return;
  const { run } = status.state;
  throw new Error(
    `${run} cannot be resumed: ${exceeded.complaint}; raise the limit first with temper set ${run} ${exceeded.flag}=N`,
  );
}

function refuseSettings({ controls, status }: Facts, settings: unknown, stepsDone: number): void {
  if (typeof settings !== 'object' || settings === null)
    throw new Error(`the settings of ${status.state.run} must be an object; pass names and numbers`);
  const complaint = findSettingsProblem(controls.requestedConfig, stepsDone, settings);
  if (complaint !== null) throw new Error(complaint);
}

function refuseBadStep({ controls, status }: Facts, step: unknown): void {
  const { run, phase } = status.state;
  if (phase === 'prepare' || phase === 'initialise')
    throw new Error(
      `${run} has no step to roll back to yet (phase ${phase}); wait for its first step, or run temper stop ${run} --now`,
    );
  const last = controls.lastKept;
  if (typeof step === 'number' && Number.isSafeInteger(step) && step >= 0 && step <= last) return;
  throw new Error(
    `the step to roll back to must be a whole number from 0 to ${last}, the last finished step of ${run}, got ${JSON.stringify(step)}; pass one of these`,
  );
}

/** A run that has no step left to train after going back would only end. */
function refuseNothingLeft({ controls, status }: Facts, { step, settings }: RollbackRequest): void {
  const steps = settings?.steps ?? controls.requestedConfig.steps;
  if (step < steps) return;
  throw new Error(
    `${status.state.run} has ${steps} steps and none is left after step ${step}; roll back to an earlier step, or pass --set steps=${step + 1} or more`,
  );
}
