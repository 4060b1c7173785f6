/** The part of the contract about supervised steps: which examples there are, and what is trained of them. */
import { z } from 'zod';

import { BlobRef, count, positive, sha256, templateKwargs } from './contract-values.ts';

/** How an example becomes tokens. */
const rendering = {
  /** Lines of `messages` and, where there are any, `tools`. */
  dataset: BlobRef,
  /** Which of an example's assistant messages are trained. */
  turns: z.enum(['all', 'last']),
  /** What becomes of an example that is longer than the limit: it is left out, cut, or refused before the run begins. */
  overlong: z.enum(['mask', 'truncate', 'refuse']),
  /** The limit, in tokens of a row. Absent: the model's context window. */
  maxExampleTokens: positive.optional(),
};

/** The supervised steps of a run. Examples are dealt by index: lines of the dataset, counted from 0. */
export const SupervisedConfig = z
  .strictObject({
    ...rendering,
    /** Lines of the dataset. */
    examples: z.int().min(2),
    /** How many of them are held out: never trained, and scored where evaluations are due. */
    heldOut: positive,
    examplesPerStep: positive,
    /** How many of the run's first steps are supervised. Absent: all of them, and no agent is played. */
    steps: positive.optional(),
    /** Of these steps alone. Absent: the run's. */
    learningRate: z.number().min(0).optional(),
    learningRateSchedule: z.enum(['constant', 'linear', 'cosine']).optional(),
  })
  .meta({ id: 'SupervisedConfig' });
export type SupervisedConfig = z.infer<typeof SupervisedConfig>;

/** What the tokens of a dataset depend on, beside its base model. */
export const ExampleRendering = z
  .strictObject({
    ...rendering,
    /** As in `RolloutConfig`. */
    chatTemplateKwargs: templateKwargs.optional(),
    chatTemplateSha256: sha256.optional(),
  })
  .meta({ id: 'ExampleRendering' });
export type ExampleRendering = z.infer<typeof ExampleRendering>;

/** What a supervised step trains. */
export const SupervisedStep = z
  .strictObject({
    rendering: ExampleRendering,
    /** The examples to train, in the order of the deal. */
    examples: z.array(count).min(1),
    /** Examples that the new policy is scored on. Absent: none, an evaluation is not due. */
    heldOut: z.array(count).min(1).optional(),
    /** True where the policy before the step is scored on them, too. Absent: it is not. */
    scoresParent: z.boolean().optional(),
  })
  .meta({ id: 'SupervisedStep' });
export type SupervisedStep = z.infer<typeof SupervisedStep>;
