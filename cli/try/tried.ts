/** Results of `temper try`. */
import type { AttemptRecord, CallRecord } from '../../store/records/trajectories.ts';

export interface TriedAttempt {
  readonly record: AttemptRecord;
  /** Calls of the record in the order of the agent's requests. */
  readonly asked: readonly CallRecord[];
  readonly seconds: number;
  /** Null if the server did not report it. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  /** Location at which the agent's code threw, such as `agent.ts:12:5`; null if it did not or if unknown. */
  readonly thrownAt: string | null;
  /** Difference of a replay on the recorded answers; null if there is none, or no replay. */
  readonly replay: string | null;
}

/** The attempts at one scenario. */
export interface TriedGroup {
  readonly scenarioId: string;
  readonly attempts: readonly TriedAttempt[];
}

export interface TrySummary {
  readonly agent: string;
  readonly model: string;
  readonly groups: readonly TriedGroup[];
  readonly warnings: readonly string[];
  /** Checks that were not possible. */
  readonly notes: readonly string[];
}
