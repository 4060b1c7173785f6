/** `schedules`: a schedule with its next times and its last run. */
export interface ScheduleSummary {
  readonly name: string;
  readonly agent: string;
  readonly baseModel: string;
  readonly timing: string;
  /** Null if the number of conversations decides it. */
  readonly steps: number | null;
  /** Work of each run: `50 steps each`. */
  readonly work: string;
  /** Why a firing trained nothing, and when; null if none did. */
  readonly waiting: string | null;
  /** `waiting`: fired, but no worker took it. A paused schedule may still have a running run: see `lastRun`. */
  readonly state: 'active' | 'waiting' | 'running' | 'paused';
  /** Reason for the pause or the wait; null if there is neither. */
  readonly reason: string | null;
  /** ISO times; empty while it is paused. */
  readonly nextTimes: readonly string[];
  /** Run of the last firing with its state; null if there is none, or if no worker has taken it. */
  readonly lastRun: { readonly run: string; readonly state: string } | null;
  /** Checkpoint that the next firing starts from, as `run@step`; null for a new adapter. */
  readonly begins: string | null;
  readonly firings: number;
  readonly skipped: number;
  readonly missed: number;
}
