/** What `temper try` has played. */
import type { AttemptRecord, CallRecord } from '../../store/records/trajectories.ts';

export interface TriedAttempt {
  readonly record: AttemptRecord;
  /** The record's calls in the order in which the agent asked. */
  readonly asked: readonly CallRecord[];
  readonly seconds: number;
  /** Null where the server did not say. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  /** Where the agent's code threw, such as `agent.ts:12:5`; null where it did not, or nobody knows. */
  readonly thrownAt: string | null;
  /** What a replay on the recorded answers did otherwise; null where it did the same, or was not asked for. */
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
  /** What could not be checked. */
  readonly notes: readonly string[];
}
