/** `review({ pairwise: true })`: the reward of an agent whose attempts people compare, or score one by one. */
import { LEAST_COMPARISONS } from '../../core/numbers/pairs.ts';
import { EXTERNAL_REWARD, type External } from '../../play/external.ts';
import { findUselessWait, WAIT, type ExternalOptions } from '../external/create-external.ts';
import { flag, takes, textUpTo, weights, whole } from '../options/options.ts';

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

const checkOptions = takes<ReviewOptions>(
  'review',
  {
    ...WAIT,
    pairwise: flag.optional(),
    comparisonsPerAttempt: whole(
      LEAST_COMPARISONS,
      `pass for example ${DEFAULT_COMPARISONS} (fewer than ${LEAST_COMPARISONS} leave attempts unconnected)`,
      100,
    ).optional(),
    reviewers: whole(1, 'pass how many people review each attempt', 100).optional(),
    question: textUpTo(2000, 'say what makes an attempt better than another').optional(),
    weights: weights('review').optional(),
  },
  { rules: [findProblem] },
);

export function review(options: ReviewOptions = {}): External<never> {
  const { timeoutMs = null, onTimeout = 'drop', minimum = null } = checkOptions(options);
  const { pairwise = false, comparisonsPerAttempt = DEFAULT_COMPARISONS, reviewers = 1, question = null } = options;
  const shares = Object.freeze({ review: 1, agent: 0, ...options.weights });
  const wait = { [EXTERNAL_REWARD]: true as const, name: null, timeoutMs, onTimeout, minimum };
  const rules = { pairwise, comparisonsPerAttempt, reviewers, question, weights: shares };
  return Object.freeze({ ...wait, review: Object.freeze(rules) });
}

function findProblem(options: ReviewOptions): string | null {
  const { pairwise, comparisonsPerAttempt, onTimeout } = options;
  if (comparisonsPerAttempt !== undefined && pairwise !== true)
    return 'comparisonsPerAttempt of review has no effect without pairwise: true; add it, or remove comparisonsPerAttempt';
  if (typeof onTimeout === 'number' && (onTimeout < 0 || onTimeout > 1))
    return `onTimeout of review must be 'drop' or a score from 0 to 1, got ${onTimeout}; pass the score of attempts that nobody reviewed`;
  return findUselessWait('review', options);
}
