/** How the groups of a step are played and judged, and how a policy is evaluated, on the wire. */
import { z } from 'zod';
import { RolloutConfig, TrainConfig } from './config.ts';
import { Usage } from './costs.ts';
import { ExternalConfig } from './sources.ts';
import { Checkpoint, Seats, TrainedRoles } from './roles.ts';
import { BlobRef, count, GroupRef, judgeName, name, positive, roleName, sha256 } from './values.ts';

/** Rules that change the given rewards, or how they are compared, and so which groups are trained. */
const rewardRules = {
  ...TrainConfig.pick({ truncated: true, overlongBuffer: true, overlongPenalty: true }).shape,
  /** Absent: rewards are compared within the group. */
  baseline: TrainConfig.shape.baseline.removeDefault().optional(),
};

/** Players of an agent's roles; hosted ones are the agent's own. Both are absent without roles. */
export const rolesOfAttempt = {
  /** The policy of `policy` that plays each trained role. */
  roles: TrainedRoles.optional(),
  /** Frozen checkpoints and the league's opponents, by role. */
  seats: Seats.optional(),
};

/** Attempts of one scenario, played by one policy. `group` is its index in the step, replacements included. */
export const RolloutInput = z
  .strictObject({
    run: name,
    branch: count,
    step: positive,
    group: count,
    agent: name,
    agentCodeSha256: sha256,
    scenarios: BlobRef,
    scenario: count,
    attempts: positive,
    seed: z.int().min(0),
    policy: Checkpoint,
    ...rolesOfAttempt,
    rollout: RolloutConfig,
    minimumGroupSize: z.int().min(2),
    /** Treatment of truncated attempts in training; does not change how they are played. */
    ...rewardRules,
    /** Judge that scores the group in a separate activity; null: the agent's own reward is the verdict. */
    judge: judgeName.nullable(),
    inputsSha256: sha256,
  })
  .meta({ id: 'RolloutInput' });
export type RolloutInput = z.infer<typeof RolloutInput>;

/** Keys and statistics of a group's two files. */
export const GroupResult = z
  .strictObject({
    step: positive,
    group: count,
    scenario: count,
    /** sha256 of `groups/<group>.rollouts.jsonl.gz` and of `groups/<group>.judged.json`; null if it is not judged yet. */
    rolloutsSha256: sha256,
    judgedSha256: sha256.nullable(),
    attempts: positive,
    failed: count,
    truncated: count,
    calls: count,
    sampledTokens: count,
    /** Rewards of the attempts that are data, in attempt order. */
    rewards: z.array(z.number()),
    /** Means over the attempts that are data; boolean metrics become `<name>Rate`. */
    metrics: z.record(z.string(), z.number()),
    /** Rewards of each role in the same order, null where it did not play; absent without roles. */
    roleRewards: z.record(roleName, z.array(z.number().nullable())).optional(),
    /** `trained`, or the reason for which the group carries no signal. */
    use: z.enum([
      'trained',
      'no-variance',
      'too-few-attempts',
      'no-sampled-tokens',
      'all-truncated',
      'stale',
      'unjudged',
    ]),
  })
  .meta({ id: 'GroupResult' });
export type GroupResult = z.infer<typeof GroupResult>;

/** Cost of a judge's answers, unusable ones included. */
export const JudgeSpending = z
  .strictObject({
    /** Answers that were received. */
    calls: count,
    /** Verdicts that were known already and cost nothing. */
    cached: count,
    promptTokens: count,
    completionTokens: count,
    /** US dollars; null if it is not known what an answer costs. */
    usd: z.number().min(0).nullable(),
  })
  .meta({ id: 'JudgeSpending' });
export type JudgeSpending = z.infer<typeof JudgeSpending>;

/** A group that was played is judged by the run's judge: the input that it was played from says which one it is. */
export const JudgeGroupInput = z.strictObject({ group: RolloutInput }).meta({ id: 'JudgeGroupInput' });
export type JudgeGroupInput = z.infer<typeof JudgeGroupInput>;

export const JudgeGroupResult = z
  .strictObject({
    group: GroupResult,
    spent: JudgeSpending,
    /** That judging took; display only. */
    seconds: z.number().min(0),
  })
  .meta({ id: 'JudgeGroupResult' });
export type JudgeGroupResult = z.infer<typeof JudgeGroupResult>;

/** Groups that were played and wait for rewards from outside: those that are complete, or over, are judged. */
export const JudgeGivenInput = RolloutInput.pick({ run: true, branch: true, minimumGroupSize: true })
  .extend({
    ...rewardRules,
    judge: judgeName,
    external: ExternalConfig,
    groups: z
      .array(
        z.strictObject({
          step: positive,
          /** Branch of a group that an earlier branch dealt; absent: that of the input. */
          branch: count.optional(),
          group: count,
          scenario: count,
          inputsSha256: sha256,
          /** Why it is decided with what it has; absent: it waits for every reward. */
          over: z.enum(['timeout', 'stale']).optional(),
        }),
      )
      .min(1),
  })
  .meta({ id: 'JudgeGivenInput' });
export type JudgeGivenInput = z.infer<typeof JudgeGivenInput>;

export const JudgeGivenResult = z
  .strictObject({
    /** Those that are decided, in the order of the input. */
    decided: z.array(GroupResult),
    waiting: z.array(
      z.strictObject({
        step: positive,
        group: count,
        /** Attempts without a reward; 0 if the group was left for the next look, as this answer was full. */
        missing: count,
        /** Attempts that need one. */
        attempts: count,
        /** When the group was played, in milliseconds since 1970; null if the store does not tell. */
        playedAt: z.int().nullable(),
      }),
    ),
  })
  .meta({ id: 'JudgeGivenResult' });
export type JudgeGivenResult = z.infer<typeof JudgeGivenResult>;

/** The recorded conversations of a step, each to be stored as a group of one attempt. */
export const GatherInput = z
  .strictObject({
    run: name,
    branch: count,
    step: positive,
    recordings: BlobRef,
    /** Their indices in the data set, in the order of the step's groups. */
    conversations: z.array(count).min(1),
    minimumGroupSize: positive,
    ...rewardRules,
  })
  .meta({ id: 'GatherInput' });
export type GatherInput = z.infer<typeof GatherInput>;

export const GatherResult = z.strictObject({ groups: z.array(GroupResult) }).meta({ id: 'GatherResult' });
export type GatherResult = z.infer<typeof GatherResult>;

/** A group that was dealt and that no step has taken yet: it waits for rewards, or for its turn. */
export const OpenGroup = z
  .strictObject({
    branch: count,
    /** Sampled it. */
    policy: Checkpoint,
    /** Number of optimizer steps since its policy. */
    staleness: count,
    /** Inputs of its rollouts. */
    inputsSha256: sha256,
    result: GroupResult,
  })
  .meta({ id: 'OpenGroup' });
export type OpenGroup = z.infer<typeof OpenGroup>;

/** All open groups of a step in plan order: the first that are complete are trained. Decided once. */
export const JudgeInput = z
  .strictObject({
    run: name,
    branch: count,
    step: positive,
    /** Number of groups that the step trains. */
    most: positive,
    window: z.array(
      GroupRef.omit({ judgedSha256: true }).extend({
        /** Null: it waits. Not part of the hash, and neither is the number of those that wait. */
        judgedSha256: sha256.nullable(),
        /** Left out, because its policy is too old. */
        isStale: z.literal(true).optional(),
      }),
    ),
    /** 1 where groups are recorded conversations. */
    minimumGroupSize: positive,
    ...rewardRules,
    /** The trained roles: a group is trained if the rewards of any of them differ. Absent without roles. */
    roles: TrainedRoles.optional(),
    inputsSha256: sha256,
    /** Hash of the choice as the workflow knows it; not part of the hash above. */
    resultsSha256: sha256,
  })
  .meta({ id: 'JudgeInput' });
export type JudgeInput = z.infer<typeof JudgeInput>;

/**
 * Groups that leave the window: those that are trained, and those that never will be. Null if the workflow knows them
 * already: thousands of results are more than Temporal takes in one answer.
 */
export const JudgeResult = z
  .strictObject({
    groups: z.array(GroupResult).nullable(),
    /** Tokens of their attempts. */
    usage: Usage.optional(),
  })
  .meta({ id: 'JudgeResult' });
export type JudgeResult = z.infer<typeof JudgeResult>;

/** One attempt at each held-out scenario. */
export const EvaluateInput = z
  .strictObject({
    run: name,
    branch: count,
    step: count,
    agent: name,
    agentCodeSha256: sha256,
    scenarios: BlobRef,
    firstScenario: count,
    count: positive,
    seed: z.int().min(0),
    policy: Checkpoint,
    ...rolesOfAttempt,
    /**
     * The first checkpoint, if roles compete: each scenario is then played once for each trained role, by `policy`
     * there and by this one's policies in the other trained roles.
     */
    start: Checkpoint.optional(),
    rollout: RolloutConfig,
    inputsSha256: sha256,
  })
  .meta({ id: 'EvaluateInput' });
export type EvaluateInput = z.infer<typeof EvaluateInput>;

export const EvalResult = z
  .strictObject({
    step: count,
    attempts: count,
    /** Held-out scenarios, where roles compete: each of them is then played several times. Absent: as many as attempts. */
    scenarios: positive.optional(),
    failed: count,
    reward: z.number().nullable(),
    metrics: z.record(z.string(), z.number()),
    rolloutsSha256: sha256,
    /** Largest share of attempts in which the model said the same from beginning to end; absent: it is not remarkable. */
    sameAnswerShare: z.number().optional(),
    /**
     * Values of the agent's `spreadBy`, as JSON, in whose scenarios no attempt succeeded, though some did elsewhere. Absent:
     * there are none.
     */
    lostClasses: z.array(z.strictObject({ field: z.string(), value: z.string(), attempts: positive })).optional(),
  })
  .meta({ id: 'EvalResult' });
export type EvalResult = z.infer<typeof EvalResult>;

/** The answer of the activity: only the evaluation is kept. */
export const Evaluated = EvalResult.extend({ usage: Usage.optional() }).meta({ id: 'Evaluated' });
export type Evaluated = z.infer<typeof Evaluated>;
