/** `manifest.json`, the commit of a step, as GPU workers write it (`gpu-worker/temper_gpu/commits/checkpoints.py`). */
import { z } from 'zod';

import {
  BlobRef,
  GroupRef,
  Sampler,
  StepMetrics,
  SupervisedStep,
  TrainConfig,
  type Checkpoint,
} from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { decodeJson } from '../bytes/json.ts';
import { hashBytes } from '../bytes/sha256.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);

/** Loose: a manifest of a later version may say more, and stays readable. */
const ManifestSchema = z
  .looseObject({
    schema: z.literal(1),
    branch: count,
    step: count,
    parent: z.looseObject({ step: count, manifestSha256: sha256 }).nullable(),
    inputsSha256: sha256,
    baseModel: z.string(),
    baseModelSha256: sha256,
    adapter: BlobRef,
    adapterConfig: BlobRef,
    optimizer: BlobRef,
    groups: z.array(GroupRef),
    learningRate: z.number().min(0),
    metrics: StepMetrics,
    platform: z.record(z.string(), z.union([z.string(), z.number()])),
    seed: count,
    /** Null in a run's first commit, for which nothing is trained. */
    train: TrainConfig.nullable(),
    /** Where the groups were sampled from an older checkpoint than the parent. */
    sampler: Sampler.optional(),
    /** The examples that were trained. Absent: the step trained its groups. */
    supervised: SupervisedStep.optional(),
  })
  .refine(({ step, train }) => step === 0 || train !== null, {
    path: ['train'],
    message: 'missing for a trained step',
  });
export type Manifest = z.output<typeof ManifestSchema>;

/** A manifest, and the hash of its bytes: what the next step's manifest names as its parent. */
export interface Commit {
  manifest: Manifest;
  sha256: string;
}

/** Throws StoreCorrupt, with the manifest's name, for bytes that are none. */
export function parseCommit(bytes: Uint8Array, key: string): Commit {
  const parsed = ManifestSchema.safeParse(decodeJson(bytes, key));
  if (parsed.success) return { manifest: parsed.data, sha256: hashBytes(bytes) };
  const issue = parsed.error.issues[0];
  const detail = `${issue?.path.join('.')}: ${issue?.message}`;
  throw new TemperError('StoreCorrupt', `${key} is not a valid manifest (${detail}); restore it from a copy`);
}

export function checkpointOf(run: string, { manifest, sha256: manifestSha256 }: Commit): Checkpoint {
  const { branch, step, adapter } = manifest;
  return { run, branch, step, manifestSha256, adapterSha256: adapter.sha256 };
}

/** What a supervised step was made from, as an input of a step has it. */
export function suppliedExamples({ supervised }: Manifest): Pick<Manifest, 'supervised'> {
  return supervised === undefined ? {} : { supervised };
}
