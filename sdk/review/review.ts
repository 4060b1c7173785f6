/** `review({ pairwise: true })`: the reward of an agent whose attempts people compare, or score one by one. */
import { badConfig, showValue } from '../../core/contract/failures.ts';
import { isWeight } from '../../core/rules/given-values.ts';
import { LEAST_COMPARISONS } from '../../core/numbers/pairs.ts';
import { EXTERNAL_REWARD, type External } from '../../play/external.ts';
import { findWaitProblem, type ExternalOptions } from '../external/create-external.ts';
import { checkOptions } from '../options/check-options.ts';

export interface ReviewOptions extends Omit<ExternalOptions, 'name'> {
  /** Reviewers see two attempts side by side and say which is better; by default each attempt gets a score from 0 to 1. */
  readonly pairwise?: boolean;
  /** Attempts of its group that each one is compared with; 3 by default. */
  readonly comparisonsPerAttempt?: number;
  /** Reviewers who answer each pair, or score each attempt; 1 by default. */
  readonly reviewers?: number;
  /** The criterion, as the page shows it. */
  readonly question?: string;
  /** The reward is the weighted sum of the reviewers' score and the agent's own reward; by default the score alone. */
  readonly weights?: { readonly review: number; readonly agent: number };
}

const DEFAULT_COMPARISONS = 3;
const MOST_COMPARISONS = 100;
const MOST_REVIEWERS = 100;
const MAX_QUESTION = 2000;

export function review(options: ReviewOptions = {}): External<never> {
  const complaint = findProblem(checkOptions('review', options));
  if (complaint !== null) throw badConfig(complaint);
  const { timeoutMs = null, onTimeout = 'drop', minimum = null } = options;
  const { pairwise = false, comparisonsPerAttempt = DEFAULT_COMPARISONS, reviewers = 1, question = null } = options;
  const weights = Object.freeze({ review: 1, agent: 0, ...options.weights });
  const wait = { [EXTERNAL_REWARD]: true as const, name: null, timeoutMs, onTimeout, minimum };
  const rules = { pairwise, comparisonsPerAttempt, reviewers, question, weights };
  return Object.freeze({ ...wait, review: Object.freeze(rules) });
}

/** A JavaScript caller may pass values of any type. */
function findProblem(options: object): string | null {
  const given = options as Record<string, unknown>;
  return (
    findWaitProblem('review', options) ??
    findComparisonsProblem(given) ??
    findReviewersProblem(given) ??
    findWeightsProblem(given['weights'])
  );
}

function findComparisonsProblem({
  pairwise,
  comparisonsPerAttempt: comparisons,
}: Record<string, unknown>): string | null {
  if (pairwise !== undefined && typeof pairwise !== 'boolean')
    return `pairwise of review must be true or false, got ${showValue(pairwise)}; pass true to compare two attempts at a time`;
  if (comparisons === undefined) return null;
  if (pairwise !== true)
    return 'comparisonsPerAttempt of review has no effect without pairwise: true; add it, or remove comparisonsPerAttempt';
  return isBetween(comparisons, LEAST_COMPARISONS, MOST_COMPARISONS)
    ? null
    : `comparisonsPerAttempt of review must be a whole number from ${LEAST_COMPARISONS} (fewer leave attempts unconnected) to ${MOST_COMPARISONS}, got ${showValue(comparisons)}; pass for example ${DEFAULT_COMPARISONS}`;
}

function findReviewersProblem({ reviewers, question, onTimeout }: Record<string, unknown>): string | null {
  if (reviewers !== undefined && !isBetween(reviewers, 1, MOST_REVIEWERS))
    return `reviewers of review must be a whole number from 1 to ${MOST_REVIEWERS}, got ${showValue(reviewers)}; pass how many people review each attempt`;
  if (typeof onTimeout === 'number' && (onTimeout < 0 || onTimeout > 1))
    return `onTimeout of review must be 'drop' or a score from 0 to 1, got ${onTimeout}; pass the score of attempts that nobody reviewed`;
  const isText = typeof question === 'string' && question.trim() !== '' && question.length <= MAX_QUESTION;
  return question === undefined || isText
    ? null
    : `question of review must be text of at most ${MAX_QUESTION} characters, got ${showValue(question)}; say what makes an attempt better than another`;
}

function findWeightsProblem(weights: unknown): string | null {
  if (weights === undefined) return null;
  const { review: share, agent, ...rest } = (weights ?? {}) as { review?: unknown; agent?: unknown };
  if (!isWeight(share) || !isWeight(agent) || Object.keys(rest).length > 0)
    return 'weights of review must be { review, agent }, both numbers from 0 to 1000000; pass for example { review: 1, agent: 0.5 }';
  return share > 0
    ? null
    : 'the weight of the review must be more than 0, or the run waits for nothing; raise it, or remove reward';
}

function isBetween(value: unknown, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
}
