/** What the page of `temper eval` shows: models side by side, and their attempts at the same scenarios. */
import type { Estimate } from '../../core/numbers/statistics.ts';
import type { GroupView } from './attempt-views.ts';

export interface Measure {
  readonly label: string;
  /** One value per model, in order. */
  readonly values: readonly (Estimate | null)[];
  /** True for a share of attempts, from 0 to 1. */
  readonly isShare: boolean;
}

export interface EvaluationView {
  readonly agent: string;
  readonly scenarios: number;
  readonly models: readonly { readonly model: string; readonly attempts: number; readonly failed: number }[];
  readonly measures: readonly Measure[];
  readonly notes: readonly string[];
  /** One scenario each, played by all models. */
  readonly groups: readonly GroupView[];
  /** Scenarios beyond those in `groups`. */
  readonly leftOut: number;
}
