/** A run as its workflow has it: what it was given, what it hands on, and whom it asks and tells. */
import type { RunConfig } from '../core/contract.ts';
import type { RunPosition } from '../core/plan-step.ts';
import type { Settings } from '../core/settings.ts';
import type { RunActivities, RunQueues } from './activities.ts';
import type { RunStatus, CarriedStatus } from './run-status.ts';
import type { CarriedJudging, Judging } from './judging.ts';
import type { CarriedControls, PendingRollback, RunControls } from './run-controls.ts';

/** No secret, no path: what is here stands in the history for everybody to read. */
export interface TrainRunInput {
  /** As the run was started; at continue-as-new as it was changed since. */
  config: RunConfig;
  queues: RunQueues;
  /** Null at the start. */
  carried: CarriedRun | null;
  /** A run that had ended goes on where its store says that it stands, or back from there. */
  goOn: ResumeFrom | null;
}

export interface ResumeFrom {
  rollback: PendingRollback | null;
  settings: Settings | null;
}

/** What a run hands on at continue-as-new. */
interface CarriedRun {
  position: RunPosition;
  board: CarriedStatus;
  instructions: CarriedControls;
  judging: CarriedJudging;
}

export interface Run extends TrainRunInput {
  activities: RunActivities;
  status: RunStatus;
  /** What people told the run, and the configuration that follows from it. */
  controls: RunControls;
  /** What the judge has cost, where there is one. */
  judging: Judging;
}
