/** A place where a model is trained: a store, an engine, and a trainer of steps. */
import type { TrainResult } from '../../core/contract/contract.ts';
import type { Store } from '../../store/store.ts';
import type { StepWork } from '../../workflows/train-step.ts';
import type { EngineAddress, EngineConnection } from '../../play/connections/engine-connection.ts';

export interface OpenBackend {
  readonly store: Store;
  readonly engine: EngineConnection;
  readonly engineAddress: EngineAddress;
  /** The base model's name as runs record it: a folder has one. */
  readonly baseModel: string;
  /** Hash of the script and its imports. */
  readonly codeSha256: string;
  /** Starts the step, or joins it where it is under way. */
  runStep(step: { project: string; model: string; work: StepWork }): Promise<TrainResult>;
  /** Tells the project's trackers of the run, from its first step on. */
  track(run: string): Promise<void>;
  /** One line for the person who runs the script. */
  print(line: string): void;
  /** Done before the backend is closed. */
  atClose(task: () => Promise<void>): void;
}

export interface Backend {
  /** `run`: the model's, which keeps the base model that it records. */
  open(baseModel: string, run: string): Promise<OpenBackend>;
  close(): Promise<void>;
}
