/** Rewards that are given from outside, on the wire: how a run awaits them, and what becomes of its groups. */
import { z } from 'zod';

import { count, positive } from './contract-values.ts';

/** The agent's `review({ … })`: what reviewers are asked, and what their answers weigh. */
export const ReviewConfig = z
  .strictObject({
    /** Two attempts are compared at a time; false: each attempt gets a score from 0 to 1. */
    pairwise: z.boolean(),
    comparisonsPerAttempt: z.int().min(2),
    /** Those who answer each pair, or score each attempt. */
    reviewers: positive,
    /** The criterion as reviewers see it; null: one of Temper's own. */
    question: z.string().max(2000).nullable(),
    /** The reward is the weighted sum of the reviewers' score and the agent's own reward. */
    weights: z.strictObject({ review: z.number().positive(), agent: z.number().min(0) }),
  })
  .meta({ id: 'ReviewConfig' });
export type ReviewConfig = z.infer<typeof ReviewConfig>;

/** The agent's `external({ … })` as a run records it. */
export const ExternalConfig = z
  .strictObject({
    /** The named reward that is given, and its weight; both absent: the whole reward is. */
    name: z.string().max(63).optional(),
    weight: z.number().optional(),
    /** From when a group was played until it is decided with what it has; absent: it waits for every reward. */
    timeoutMs: positive.optional(),
    /** Reward of attempts without one once the time is over; absent: they are dropped. */
    onTimeout: z.number().optional(),
    /** Fewest given rewards with which a group is used once its time is over; absent: `minimumGroupSize`. */
    minimum: count.optional(),
    /** Present exactly if the judge is `review`. */
    review: ReviewConfig.optional(),
  })
  .meta({ id: 'ExternalConfig' });
export type ExternalConfig = z.infer<typeof ExternalConfig>;

/** Rewards that a run waits for, as it saw them last; for display. */
export const AwaitedRewards = z
  .strictObject({
    step: positive,
    /** Attempts without a reward, and all that need one. */
    missing: count,
    attempts: count,
    /** Groups that are not decided, and all of the step's. */
    waiting: count,
    groups: count,
    /** Time at which the oldest of them was played. */
    since: z.string(),
    /** Time at which the next group is decided with what it has; null: none. */
    nextDeadline: z.string().nullable(),
    /** Groups that are complete, and those that the step needs; further groups may be open. */
    complete: count,
    needed: positive,
  })
  .meta({ id: 'AwaitedRewards' });
export type AwaitedRewards = z.infer<typeof AwaitedRewards>;
