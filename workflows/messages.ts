/** What can be asked of a run and told to it. The command line imports these definitions. */
import { defineQuery, defineUpdate } from '@temporalio/workflow';

import type { RunState } from '../core/contract.ts';

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

/** Finish the step in hand, keep the result, end. Told twice it answers again and changes nothing. */
export const stopUpdate = defineUpdate<StopAnswer, [StopRequest]>('stop');

/** The run's state now, with what it waits for. Works while a worker lives; `state.json` works always. */
export const progressQuery = defineQuery<RunState>('progress');

const MAX_REASON_LENGTH = 500;

/** Validator of `stopUpdate`: throws what the person is told. */
export function refuseBadStop(request: StopRequest): void {
  const reason: unknown = request?.reason;
  if (reason === null || (typeof reason === 'string' && reason.length <= MAX_REASON_LENGTH)) return;
  throw new Error(`a stop's reason must be null or text of at most ${MAX_REASON_LENGTH} characters; shorten it`);
}
