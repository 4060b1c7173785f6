/** The pairs of a group that was played: a pure function of its file. */
import { hashOf } from '../../core/hashes.ts';
import { planPairs } from '../../core/plan-pairs.ts';
import type { PairPlan, ReviewRules } from '../../core/review.ts';
import { deriveSeed } from '../../core/seeds.ts';
import { inPlayOrder, type AttemptRecord, type Rollouts } from './trajectories.ts';

/** Attempts that say the same, word for word, are shown once. The hash of a group's inputs is the seed: no name is in it. */
export function planGroupPairs(
  { header, attempts }: Rollouts,
  rules: Pick<ReviewRules, 'comparisonsPerAttempt'>,
): PairPlan {
  const same = new Map<number, number[]>();
  const shown = new Map<string, number>();
  for (const record of attempts.filter(({ status }) => status === 'ok')) {
    const said = hashOf(saidIn(record));
    const first = shown.get(said) ?? record.attempt;
    shown.set(said, first);
    same.set(first, [...(same.get(first) ?? []), record.attempt]);
  }
  const seed = deriveSeed(['pairs', header.inputsSha256]);
  return { pairs: planPairs([...same.keys()], rules.comparisonsPerAttempt, seed), same };
}

/** Requests by their hashes, with the answers. */
function saidIn({ calls }: AttemptRecord): unknown[] {
  return inPlayOrder(calls).map(({ key, message }) => [key, message]);
}
