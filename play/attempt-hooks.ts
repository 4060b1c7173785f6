/** What helpers of an agent do with the attempt that it plays: hidden in the rollout's context. */
import type { TemperError } from '../core/contract/failures.ts';
import type { HostedCalls } from './hosted/hosted-calls.ts';
import type { OpenWorkflowAttempt } from './model-activities/workflow-attempt.ts';
import type { PlayProgram } from './programs/program.ts';

/** Registered globally: an agent file may load another copy of this module than the worker that plays it. */
export const ATTEMPT_HOOKS = Symbol.for('temper.attempt-hooks');

export interface AttemptHooks {
  /** Folder of the agent's file. */
  readonly folder: string;
  /** Discards the attempt: it is played again, or its run ends. */
  readonly abort: (error: TemperError) => void;
  /** Called once the attempt is over and its journal is complete; waited for. */
  readonly onEnd: (end: () => Promise<void>) => void;
  /** Another model, whose calls are recorded beside those of the policy. */
  readonly openHosted: HostedCalls['open'];
  /** How often something died at one place, this time included: over all repetitions of the attempt. */
  readonly countDeath: (place: string) => number;
  /** Null in a script, whose attempts have no scenario. */
  readonly playProgram: PlayProgram | null;
  readonly openWorkflow: OpenWorkflowAttempt;
}

/** Null for a context that no attempt has. */
export function attemptHooks(context: object): AttemptHooks | null {
  return (context as { readonly [ATTEMPT_HOOKS]?: AttemptHooks })[ATTEMPT_HOOKS] ?? null;
}
