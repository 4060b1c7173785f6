/** Data of a report. */
import type { RunConfig, RunState, StepSummary } from '../../core/contract.ts';
import type { ReviewAgreement } from '../../store/records/review-agreement.ts';
import type { AttemptSet } from '../../views/api/report-page.ts';
import type { FoundAdvisory } from '../../views/runs/advisories.ts';

export interface ReportData {
  readonly state: RunState;
  readonly config: RunConfig | null;
  readonly steps: readonly StepSummary[];
  readonly advisories: readonly FoundAdvisory[];
  readonly attemptSets: readonly AttemptSet[];
  /** Sentences that say what was left out. */
  readonly leftOut: readonly string[];
  /** Null unless people review the run. */
  readonly agreement: ReviewAgreement | null;
  readonly storeUri: string;
  readonly version: string;
}
