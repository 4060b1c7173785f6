/** What a run trains beside its agent's own rewards, on the wire: rewards from outside, examples, recorded conversations. */
import { z } from 'zod';
import { optionsOf } from './options.ts';
import { Checkpoint } from './roles.ts';
import { BlobRef, count, name, positive, sha256, templateKwargs } from './values.ts';

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

const ofWarmStart = optionsOf('warm-start');

/** Lines of `messages` and, if there are any, `tools`. */
const dataset = ofWarmStart(BlobRef, 'JSON lines of chats that the first steps train before the agent is played', {
  flag: 'warm-start',
  placeholder: 'FILE',
  path: 'supervised.dataset.sha256',
  isMain: true,
});

/** How an example becomes tokens. */
const rendering = {
  turns: ofWarmStart(z.enum(['all', 'last']), 'assistant messages to train: `all` or `last`', {
    placeholder: 'WHICH',
    default: '`all`',
  }),
  /** In tokens of a row. */
  maxExampleTokens: ofWarmStart(positive.optional(), 'token limit of an example', {
    default: "the model's context window",
  }),
  overlong: ofWarmStart(
    z.enum(['mask', 'truncate', 'refuse']),
    'examples above the limit: `mask` leaves them out, `truncate` cuts them, `refuse` ends the run',
    { default: '`mask`' },
  ),
};

/** The supervised steps of a run. Examples are dealt by index: lines of the dataset, counted from 0. */
export const SupervisedConfig = z
  .strictObject({
    dataset,
    /** Absent: all steps of the run, and no agent is played. */
    steps: ofWarmStart(positive.optional(), 'how many of `--steps` train them', {
      flag: 'warm-start-steps',
      default: 'one pass over the file',
    }),
    examplesPerStep: ofWarmStart(positive, 'examples per step', { default: '16' }),
    ...rendering,
    /** Lines of the dataset. */
    examples: z.int().min(2),
    /** Never trained; scored whenever evaluations are due. */
    heldOut: ofWarmStart(positive, 'examples that are held out and scored', {
      flag: 'held-out-examples',
      default: 'a tenth, at most 200',
    }),
    learningRate: ofWarmStart(z.number().min(0).optional(), 'learning rate of these steps', {
      flag: 'warm-start-learning-rate',
      default: '`--learning-rate`',
    }),
    learningRateSchedule: ofWarmStart(
      z.enum(['constant', 'linear', 'cosine']).optional(),
      '`constant`, `linear` or `cosine`, down to a tenth at the last of these steps',
      { flag: 'warm-start-learning-rate-schedule', default: '`constant`' },
    ),
  })
  .meta({ id: 'SupervisedConfig' });
export type SupervisedConfig = z.infer<typeof SupervisedConfig>;

/** Inputs that a dataset's tokens depend on, beside its base model. */
export const ExampleRendering = z
  .strictObject({
    dataset,
    ...rendering,
    /** Same as in `RolloutConfig`. */
    chatTemplateKwargs: templateKwargs.optional(),
    chatTemplateSha256: sha256.optional(),
  })
  .meta({ id: 'ExampleRendering' });
export type ExampleRendering = z.infer<typeof ExampleRendering>;

/** Data and settings of one supervised step. */
export const SupervisedStep = z
  .strictObject({
    rendering: ExampleRendering,
    /** Examples to train, in order. */
    examples: z.array(count).min(1),
    /** Examples that the new policy is scored on. Absent: none, an evaluation is not due. */
    heldOut: z.array(count).min(1).optional(),
    /** True if the policy before the step is scored on them, too. Absent: it is not. */
    scoresParent: z.boolean().optional(),
  })
  .meta({ id: 'SupervisedStep' });
export type SupervisedStep = z.infer<typeof SupervisedStep>;

/** A policy that answered recorded conversations; known by its adapter alone. */
export const RecordedSampler = Checkpoint.omit({ run: true, adapters: true })
  .extend({
    /** Number of optimizer steps from it to the run's first checkpoint; 0: the same weights. */
    age: count,
  })
  .meta({ id: 'RecordedSampler' });
export type RecordedSampler = z.infer<typeof RecordedSampler>;

/** Recorded conversations that a run trains instead of playing its agent. Dealt by index, in the order of the data set. */
export const ProductionConfig = z
  .strictObject({
    /** Run whose served conversations these are; in no hash. */
    run: name,
    /** The conversations with their feedback, as an evaluation's attempts are stored. */
    recordings: BlobRef,
    conversations: positive,
    /** The policies that sampled them. */
    samplers: z.array(RecordedSampler).min(1),
    /** Conversations with feedback that are not trained, by reason. */
    leftOut: z.record(z.string(), positive),
  })
  .meta({ id: 'ProductionConfig' });
export type ProductionConfig = z.infer<typeof ProductionConfig>;

/** Source of a schedule's firings: the conversations that have feedback by then. */
export const ProductionSource = z
  .strictObject({
    run: name,
    /** Fewest conversations with feedback that no firing has trained; a firing with fewer trains nothing. */
    atLeast: positive,
    /** Most optimizer steps between the policy that answered and the one that is trained. */
    maxPolicyAge: count,
    /** Number of passes over them. */
    epochs: positive,
  })
  .meta({ id: 'ProductionSource' });
export type ProductionSource = z.infer<typeof ProductionSource>;
