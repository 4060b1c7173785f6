/** `manifest.json`, the commit of a step: written by GPU workers, read by both languages. */
import { z } from 'zod';

import { TrainConfig } from './config.ts';
import { LeagueScores, TrainedRoles } from './roles.ts';
import { SupervisedStep } from './sources.ts';
import { baseModel, BlobRef, count, GroupRef, positive, roleName, sha256 } from './values.ts';
import { RECORD_SCHEMA } from './wire-constants.ts';

/** Policy that sampled a step's groups, if it is older than the step's parent. */
export const Sampler = z
  .strictObject({
    branch: count,
    step: count,
    manifestSha256: sha256,
    adapterSha256: sha256,
    /** Number of optimizer steps between it and the parent. */
    staleness: positive,
    /** A checkpoint of another run, known here by its adapter alone. Absent: one of this run. */
    foreign: z.literal(true).optional(),
  })
  .meta({ id: 'Sampler' });
export type Sampler = z.infer<typeof Sampler>;

/** Numbers of one optimizer step; part of the commit, so nothing here may depend on time. A name's value is null if it was not finite. */
export const StepMetrics = z.record(z.string(), z.number().nullable()).meta({ id: 'StepMetrics' });
export type StepMetrics = z.infer<typeof StepMetrics>;

/** Files that a step makes of a policy beside `main`. */
export const PolicyFiles = z.strictObject({ adapter: BlobRef, optimizer: BlobRef }).meta({ id: 'PolicyFiles' });
export type PolicyFiles = z.infer<typeof PolicyFiles>;

/** Holds no name, time or host; the sha256 of its canonical JSON is the checkpoint's identity. */
export const Manifest = z
  .strictObject({
    schema: z.literal(RECORD_SCHEMA),
    branch: count,
    step: count,
    parent: z.strictObject({ step: count, manifestSha256: sha256 }).nullable(),
    inputsSha256: sha256,
    baseModel,
    baseModelSha256: sha256,
    /** A LoRA adapter, or all weights. */
    adapter: BlobRef,
    adapterConfig: BlobRef,
    optimizer: BlobRef,
    groups: z.array(GroupRef),
    learningRate: z.number().min(0),
    metrics: StepMetrics,
    platform: z.record(z.string(), z.union([z.string(), z.int()])),
    /** With this and `train`, the manifest names all that its step was made from: `temper verify` does it again. */
    seed: count,
    /** Null in a run's first commit, for which nothing is trained. */
    train: TrainConfig.nullable(),
    /** Older policies that sampled some of the groups; the parent may have sampled others. Absent: it sampled all. */
    samplers: z.array(Sampler).min(1).optional(),
    /** The examples that were trained. Absent: the step trained its groups. */
    supervised: SupervisedStep.optional(),
    /** The policies beside `main`, each with its adapter's weights; `adapterConfig` is that of all. */
    policies: z.record(roleName, PolicyFiles).optional(),
    /** The policy that each trained role trains. Absent: the run has no roles. */
    roles: TrainedRoles.optional(),
    /** Running mean reward of each role after the step, with `rae`; without roles that of `main`. */
    baselines: z.record(roleName, z.number()).optional(),
    /** Scores after the step, as `TrainInput` gave them. */
    league: LeagueScores.optional(),
    /** Absent: `adapter` is a LoRA adapter. Otherwise `adapterConfig` says nothing that is needed. */
    fullFineTuning: z.literal(true).optional(),
  })
  .meta({ id: 'Manifest' });
export type Manifest = z.infer<typeof Manifest>;
