/** A registered model's run, as everything that a script does with the model finds it and moves it on. */
import type { Checkpoint, EvalResult, RunConfig, StepSummary } from '../../core/contract/contract.ts';
import type { Store } from '../../store/store.ts';
import type { OpenBackend } from './backend.ts';

export interface LoopRun {
  readonly name: string;
  readonly project: string;
  readonly model: string;
  readonly config: RunConfig;
  readonly backend: OpenBackend;
  readonly store: Store;
  /** The last step that is over. */
  step: number;
  /** The checkpoint that samples now and that the next step is trained from: an earlier step's if the last was skipped. */
  checkpoint: Checkpoint;
  /** How many groups of the next step, and of the evaluation after the last, were asked for. */
  gathered: { train: number; val: number };
  /** For people: the steps so far, the evaluations, and the last step's mean reward. */
  curve: StepSummary[];
  evals: EvalResult[];
  reward: number | null;
  readonly openedAtMs: number;
  /** When the step in hand began. */
  stepBeganAtMs: number;
  /** Seconds of earlier scripts. */
  readonly secondsBefore: number;
}
