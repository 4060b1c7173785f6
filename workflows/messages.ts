/** What can be asked of a run and told to it. The command line imports these definitions; `refusals.ts` says what is refused. */
import { defineQuery, defineUpdate } from '@temporalio/workflow';

import type { RunState, SettingChange } from '../core/contract.ts';
import type { Settings } from '../core/settings.ts';

export interface StopRequest {
  /** Shown with the run; null where the person gave none. */
  reason: string | null;
}

export interface StopAnswer {
  /** The step after which the run ends: the one in hand, or the last that finished. */
  afterStep: number;
  /** False where an earlier stop had been accepted already. */
  first: boolean;
}

export interface PauseRequest {
  reason: string | null;
}

export interface PauseAnswer {
  /** The step after which nothing moves: the one in hand, or the last that finished. */
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
  /** False where this was told before and nothing has been finished since. */
  first: boolean;
}

/** Finish the step in hand, keep the result, end. Told twice it answers again and changes nothing, as all updates here. */
export const stopUpdate = defineUpdate<StopAnswer, [StopRequest]>('stop');

/** Finish the step in hand, then begin none until resumed. */
export const pauseUpdate = defineUpdate<PauseAnswer, [PauseRequest]>('pause');
export const resumeUpdate = defineUpdate<ResumeAnswer>('resume');

/** Other settings from the next step's plan on, until they are set again. */
export const setUpdate = defineUpdate<SetAnswer, [SetRequest]>('set');

/** Give up the work in hand, go back to a finished step, and train what followed anew, on a branch of its own. */
export const rollbackUpdate = defineUpdate<RollbackAnswer, [RollbackRequest]>('rollback');

/** The run's state now, with what it waits for. Works while a worker lives; `state.json` works always. */
export const progressQuery = defineQuery<RunState>('progress');
