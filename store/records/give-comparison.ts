/** Gives comparisons of attempts to a run that people review by pairs: pages and programs come through here. */
import { ATTEMPT_ID_RULE, formatAttemptId, parseAttemptId, type AttemptPlace } from '../../core/attempt-id.ts';
import type { PairAnswer } from '../../core/bradley-terry.ts';
import type { ReviewConfig } from '../../core/contract.ts';
import { badConfig } from '../../core/failures.ts';
import type { Pair } from '../../core/plan-pairs.ts';
import { turnAnswer } from '../../core/review.ts';
import { showValue } from '../../core/show-value.ts';
import { rolloutsKey, type GroupPlace } from '../layout.ts';
import type { Store } from '../store.ts';
import {
  findTextProblem,
  MAX_BY,
  MAX_KEY,
  MAX_NOTE,
  refuse,
  refuseAbandoned,
  refuseMore,
  see,
  type RefusedReward,
} from './give-reward.ts';
import { addGift, readGiven, type Added, type ComparisonRow } from './given-rewards.ts';
import { readRollouts } from './group-files.ts';
import { planGroupPairs } from './review-plan.ts';
import { missingReviews } from './review-verdict.ts';
import { requireRun } from './run-reader.ts';
import type { Rollouts } from './trajectories.ts';

/** A comparison as somebody gives it. */
export interface GivenComparison {
  /** `BRANCH.STEP.GROUP.ATTEMPT`, on the side on which it was shown. */
  readonly left: string;
  readonly right: string;
  readonly answer: PairAnswer;
  readonly by: string | null;
  readonly note: string | null;
  /** Idempotency key. */
  readonly key: string | null;
}

export type ComparisonAnswer =
  /** `missing`: attempts of its group in pairs that are still open; with none, the run should be woken. */
  { readonly outcome: 'given' | 'same'; readonly missing: number } | RefusedReward;

/** Throws BadConfig if there is no such run, or if it is not reviewed by pairs. */
export async function giveComparison(store: Store, run: string, gift: GivenComparison): Promise<ComparisonAnswer> {
  const review = await requirePairs(store, run);
  const found = await findPair(store, run, gift, review);
  if ('outcome' in found) return found;
  const { place, rollouts, pair, isTurned } = found;
  const { by, note, key } = gift;
  const answer = isTurned ? turnAnswer(gift.answer) : gift.answer;
  const row = { schema: 1, kind: 'comparison', ...pair, answer, by, note, at: new Date().toISOString(), key } as const;
  const added = await addGift<ComparisonRow>(store, place, row);
  const refusal = explain(place, gift, added);
  if (refusal !== null) return refusal;
  const missing = missingReviews(rollouts, await readGiven(store, place), review).size;
  return { outcome: added.outcome as 'given' | 'same', missing };
}

async function requirePairs(store: Store, run: string): Promise<ReviewConfig> {
  const review = (await requireRun(store, run)).file.config.external?.review;
  if (review?.pairwise === true) return review;
  const rule = `the run ${run} must be reviewed by pairs to take comparisons, but is not`;
  throw badConfig(`${rule}; give its agent reward: review({ pairwise: true }), and start another run`);
}

interface FoundPair {
  readonly place: GroupPlace;
  readonly rollouts: Rollouts;
  /** From the planned sides. */
  readonly pair: Pair;
  readonly isTurned: boolean;
}

async function findPair(
  store: Store,
  run: string,
  gift: GivenComparison,
  review: ReviewConfig,
): Promise<FoundPair | RefusedReward> {
  const ids = [gift.left, gift.right].map(parseAttemptId);
  const [left, right] = ids;
  if (!left || !right) {
    const wrong = showValue(left ? gift.right : gift.left);
    return refuse('bad-attempt', `an attempt must be named ${ATTEMPT_ID_RULE}, got ${wrong}; ${see(run)}`);
  }
  const problem = findTextsProblem(gift);
  if (problem !== null) return refuse('bad-value', problem);
  const place: GroupPlace = { run, branch: left.branch, step: left.step, group: left.group };
  const rollouts = isSameGroup(left, right) ? await readRollouts(store, rolloutsKey(place)) : null;
  const planned =
    rollouts === null ? null : findPlanned(rollouts.rollouts, { left: left.attempt, right: right.attempt }, review);
  if (rollouts === null || planned === null) {
    const rule = `${gift.left} and ${gift.right} must be two attempts of the run ${run} that are compared with each other`;
    return refuse('unknown-attempt', `${rule}, but are not; use a pair that temper review lists`);
  }
  const abandoned = await refuseAbandoned(store, run, left, 'these attempts');
  return abandoned ?? { place, rollouts: rollouts.rollouts, ...planned };
}

function findTextsProblem({ by, note, key }: GivenComparison): string | null {
  return (
    findTextProblem('by', by, MAX_BY) ?? findTextProblem('note', note, MAX_NOTE) ?? findTextProblem('key', key, MAX_KEY)
  );
}

function isSameGroup(one: AttemptPlace, other: AttemptPlace): boolean {
  return one.branch === other.branch && one.step === other.step && one.group === other.group;
}

function findPlanned(
  rollouts: Rollouts,
  asked: Pair,
  review: ReviewConfig,
): Pick<FoundPair, 'pair' | 'isTurned'> | null {
  const { pairs } = planGroupPairs(rollouts, review);
  const straight = pairs.find(({ left, right }) => left === asked.left && right === asked.right);
  if (straight !== undefined) return { pair: straight, isTurned: false };
  const turned = pairs.find(({ left, right }) => left === asked.right && right === asked.left);
  return turned === undefined ? null : { pair: turned, isTurned: true };
}

function explain(
  place: GroupPlace,
  { left, right }: GivenComparison,
  { outcome, row }: Added<ComparisonRow>,
): RefusedReward | null {
  if (outcome === 'key-reused') {
    const rule = 'an idempotency key must belong to one answer';
    return refuse(
      'key-reused',
      `${rule}, but ${showValue(row.key)} was sent with another one; send this answer with a new key`,
    );
  }
  if (outcome === 'full') return refuseMore(`${left} with ${right}`);
  if (outcome !== 'closed') return null;
  const rule = `an answer must be given before its step is decided, and step ${place.step} of the run ${place.run} is decided`;
  return refuse('decided', `${rule} (group ${place.group} since ${row.at}); ${left} and ${right} keep what they had`);
}

/** Names of a pair's attempts. */
export function namePair(place: GroupPlace, { left, right }: Pair): { left: string; right: string } {
  return {
    left: formatAttemptId({ ...place, attempt: left }),
    right: formatAttemptId({ ...place, attempt: right }),
  };
}
