/** Data of a report, and the limits that keep it small enough to mail. */
import type { RunConfig, RunState, StepSummary } from '../../core/contract.ts';
import type { ReviewAgreement } from '../../store/records/review-agreement.ts';
import type { AttemptSet } from '../../views/api/report-page.ts';
import type { GroupBounds } from '../../views/attempts/group.ts';
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

export const BOUNDS = {
  /** Steps whose groups are shown: the first, the last, and as many between. */
  steps: 8,
  groupsPerStep: 6,
  evalGames: 24,
  attemptsPerGroup: 32,
  callsPerAttempt: 40,
  textLength: 8000,
  /** Characters of all attempts together. */
  total: 6_000_000,
} as const;

/** The same for one group. */
export const GROUP_BOUNDS: GroupBounds = {
  attempts: BOUNDS.attemptsPerGroup,
  calls: BOUNDS.callsPerAttempt,
  textLength: BOUNDS.textLength,
  promptLength: BOUNDS.textLength,
  total: BOUNDS.total,
};
