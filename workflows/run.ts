/** A run in its workflow: its input, the state that continue-as-new carries, and the objects that it works with. */
import type { CostLedger, RunConfig } from '../core/contract/contract.ts';
import type { RunPosition } from '../core/plan/step.ts';
import type { Settings } from '../core/rules/settings.ts';
import type { RunActivities, RunQueues } from './activities.ts';
import type { RunStatus, CarriedStatus } from './run-status.ts';
import type { Costs } from './costs.ts';
import type { Tracking } from './track-run.ts';
import type { CarriedControls, PendingRollback, RunControls } from './run-controls.ts';

/** The input is in the history, which everybody can read: no secret, no path. */
export interface TrainRunInput {
  /** The configuration at the start; at continue-as-new, with the changes since. */
  config: RunConfig;
  queues: RunQueues;
  /** Null at the start. */
  carried: CarriedRun | null;
  /** Resumes an ended run at the position that its store has, or rolls it back from there. */
  resume: ResumeFrom | null;
  /** Trackers and trace exporters by name, as workers are configured. Absent: the run is delivered to nobody. */
  track?: Tracking;
}

export interface ResumeFrom {
  rollback: PendingRollback | null;
  settings: Settings | null;
}

/** The state that continue-as-new carries. */
interface CarriedRun {
  position: RunPosition;
  status: CarriedStatus;
  controls: CarriedControls;
  costs: CostLedger;
}

export interface Run extends TrainRunInput {
  activities: RunActivities;
  status: RunStatus;
  /** Requests of people, and the configuration with them. */
  controls: RunControls;
  costs: Costs;
}
