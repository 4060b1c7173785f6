/** Data of a report, and the limits that keep it small enough to mail. */
import type { RunConfig, RunState, StepSummary } from '../../core/contract.ts';
import type { ReviewAgreement } from '../../store/records/review-agreement.ts';

export interface ReportData {
  readonly state: RunState;
  readonly config: RunConfig | null;
  readonly steps: readonly StepSummary[];
  readonly attemptSets: readonly AttemptSet[];
  /** Sentences that say what was left out. */
  readonly leftOut: readonly string[];
  /** Null unless people review the run. */
  readonly agreement: ReviewAgreement | null;
  readonly storeUri: string;
  readonly version: string;
}

/** One step's groups, or one evaluation's games. */
export interface AttemptSet {
  readonly kind: 'step' | 'eval';
  /** Label of its button; default: kind and step. */
  readonly label?: string;
  readonly step: number;
  readonly groups: readonly GroupView[];
  readonly leftOut: string | null;
}

export interface GroupView {
  /** `group 3 · game-17`, or what an evaluation's games have in common. */
  readonly title: string;
  readonly scenario: string;
  readonly attempts: readonly AttemptView[];
}

export interface AttemptView {
  readonly title: string;
  readonly reward: number | null;
  readonly advantage: number | null;
  /** Judge's reason; null if there is none. */
  readonly explanation: string | null;
  readonly failure: string | null;
  readonly metrics: Readonly<Record<string, number | boolean>>;
  readonly logs: readonly string[];
  readonly truncated: boolean;
  readonly turns: readonly TurnView[];
  readonly leftOut: string | null;
  /** Answers of hosted models, a line each. */
  readonly hosted: readonly string[];
}

export interface MessageView {
  readonly role: string;
  readonly text: string;
}

export interface TurnView {
  /** True if the conversation starts anew instead of growing. */
  readonly fresh: boolean;
  readonly messages: readonly MessageView[];
  readonly answer: MessageView;
  readonly finishReason: string | null;
  /** Reward of the turn alone; null if none was reported. */
  readonly reward: number | null;
  readonly promptTokens: number;
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
}

export const BOUNDS = {
  /** Steps whose groups are shown: the first, the last, and as many between. */
  steps: 8,
  groupsPerStep: 6,
  evalGames: 24,
  attemptsPerGroup: 32,
  callsPerAttempt: 40,
  textLength: 8000,
  tokensPerTurn: 600,
  /** Characters of all attempts together. */
  total: 6_000_000,
} as const;

/** First, last, and evenly spaced ones between. */
export function sampleEvenly<T>(items: readonly T[], limit: number): T[] {
  if (items.length <= limit) return [...items];
  return Array.from({ length: limit }, (_, index) => items[Math.round((index * (items.length - 1)) / (limit - 1))]!);
}

export function clipText(text: string, limit: number = BOUNDS.textLength): string {
  return text.length <= limit ? text : `${text.slice(0, limit)} … (${text.length - limit} more characters)`;
}
