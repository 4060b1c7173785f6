/** Data that the page of a report holds, for its script to draw. */
import type { Chart } from '../charts/chart.ts';
import type { GroupView } from './attempt-views.ts';

/** One step's groups, or one evaluation's attempts. */
export interface AttemptSet {
  readonly kind: 'step' | 'eval';
  /** Label of its button; default: kind and step. */
  readonly label?: string;
  readonly step: number;
  readonly groups: readonly GroupView[];
  readonly leftOut: string | null;
}

export interface ReportPageData {
  readonly charts: readonly Chart[];
  readonly attemptSets: readonly AttemptSet[];
}
