/** What operations answer with, apart from the work that makes it: a script's compiler reads these types alone. */
import type { LeagueScore, RunState, StepSummary } from '../core/contract/contract.ts';
import type { Agreement } from '../core/numbers/agreement.ts';
import type { TargetProgress } from '../outbound/list-deliveries.ts';
import type { AwaitedList } from '../views/api/attempt-views.ts';
import type { RunRow, RunView } from '../views/api/run-views.ts';
import type { HeldOutLoss } from '../views/charts/held-out.ts';
import type { PendingActivity } from './pending/pending-activity.ts';

export interface RolledBack {
  readonly run: string;
  readonly kept: number;
  /** Last finished step. */
  readonly undone: number;
  readonly first: boolean;
  /** True if the run had ended and its workflow was started again. */
  readonly isAgain: boolean;
}

export interface Period {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

export interface Tracked {
  readonly run: string;
  /** Targets of the request that workers deliver to from now on. */
  readonly byWorkers: readonly string[];
  readonly trackers: readonly TargetProgress[];
}

export interface FoundRuns {
  readonly runs: readonly RunRow[];
  /** Runs with files that cannot be read. */
  readonly unreadable: readonly { readonly message: string }[];
}

/** The view of a run, with what its other files and the server say. */
export interface FoundRun extends RunView {
  /** As it runs: the store is updated only once per step and evaluation. */
  readonly phase: RunState['phase'] | null;
  readonly waitingFor: string | null;
  /** Null if no server answered in time, or if the run has ended. */
  readonly pendingActivities: readonly PendingActivity[] | null;
  readonly lastStep: StepSummary | null;
  readonly heldOutLoss: HeldOutLoss | null;
  readonly engine: ShownEngine | null;
  readonly league: Readonly<Record<string, readonly LeagueScore[]>> | null;
  /** Rewards that it waits for, as the store has them now. */
  readonly awaited: string | null;
  /** Of the reviewers; null unless people review the run. */
  readonly agreement: Agreement | null;
  /** A script trains it, no workflow. */
  readonly isScript: boolean;
  readonly store: string;
}

/** Engine that sampled a step (docs/engine.md). */
export interface ShownEngine {
  readonly name: string;
  readonly flags: string | null;
  /** True if a repeated run samples the same tokens. */
  readonly repeatsSamples: boolean;
}

export interface FoundRewards extends AwaitedList {
  /** Whether the run takes rewards from outside at all. */
  readonly isExternal: boolean;
}
