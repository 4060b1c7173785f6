/** Contract types of training on recorded conversations: what a run trains, and what a schedule trains it on. */
import { z } from 'zod';

import { Checkpoint } from './contract-roles.ts';
import { BlobRef, count, name, positive } from './contract-values.ts';

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
