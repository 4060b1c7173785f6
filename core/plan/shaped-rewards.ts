/** Rewards as training takes them: less what long answers cost, and without a gain from being cut off. */
import type { RewardRules } from './step.ts';

export type OverlongRules = Pick<RewardRules, 'overlongBuffer' | 'overlongPenalty'>;

interface Call {
  readonly request: { readonly max_tokens?: number };
  readonly tokenIds: readonly number[];
}

interface Attempt {
  readonly truncated: boolean;
  readonly calls: readonly Call[];
}

interface Judged {
  readonly rewards: readonly (number | null)[];
  readonly overlongCosts?: readonly number[] | undefined;
}

/** Penalties for each attempt's length, as verdicts record them for the trainer; nothing without a buffer. */
export function overlongCosts(
  { overlongBuffer, overlongPenalty }: OverlongRules,
  attempts: readonly Attempt[],
): { overlongCosts?: number[] } {
  if (overlongBuffer === 0) return {};
  return { overlongCosts: attempts.map((attempt) => overlongPenalty * overlongShare(attempt, overlongBuffer)) };
}

/**
 * Rewards that advantages are computed from, by attempt: less the cost of long answers; the lowest of its group if a
 * truncated attempt is penalised; null for a discarded attempt. The trainer penalises, too, but at each turn.
 */
export function trainedRewards(
  { truncated }: Pick<RewardRules, 'truncated'>,
  attempts: readonly Attempt[],
  { rewards: given, overlongCosts: costs }: Judged,
): (number | null)[] {
  const rewards = given.map((reward, index) => (reward === null ? null : reward - (costs?.[index] ?? 0)));
  const lowest = Math.min(...rewards.filter((reward) => reward !== null));
  const isPenalised = (index: number) => truncated === 'penalise' && attempts[index]!.truncated;
  return rewards.map((reward, index) => (reward !== null && isPenalised(index) ? lowest : reward));
}

/**
 * The share of the last `buffer` tokens that a call may sample which it did, from 0 to 1; the largest of an attempt's
 * calls. DAPO's soft overlong punishment (arXiv 2503.14476, eq. 13).
 */
function overlongShare({ calls }: Attempt, buffer: number): number {
  const shares = calls.map(({ request: { max_tokens: limit }, tokenIds }) => {
    if (typeof limit !== 'number' || limit < 1) return 0;
    const last = Math.min(buffer, limit);
    return Math.min(1, (tokenIds.length - (limit - last)) / last);
  });
  return Math.max(0, ...shares);
}
