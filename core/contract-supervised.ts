/** The part of the contract about supervised steps: which examples there are, and what is trained of them. */
import { z } from 'zod';

import { optionsOf } from './contract-options.ts';
import { BlobRef, count, positive, sha256, templateKwargs } from './contract-values.ts';

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
      isMain: true,
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
