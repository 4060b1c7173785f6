/** `manifest.json`, the commit of a step, as GPU workers write it (`gpu-worker/temper_gpu/commits/checkpoints.py`). */
import { z } from 'zod';

import {
  BASE_MODEL_PATTERN,
  BlobRef,
  GroupRef,
  Sampler,
  StepMetrics,
  SupervisedStep,
  TrainConfig,
  type Checkpoint,
} from '../../core/contract.ts';
import { RECORD_SCHEMA } from '../../core/wire-constants.ts';
import { decodeJson } from '../bytes/json.ts';
import { hashBytes } from '../bytes/sha256.ts';
import { parseStored, tolerant } from './file-schemas.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);
const blob = tolerant(BlobRef);

/** Loose at every level: a manifest of a later version may say more, and stays readable. */
const ManifestSchema = z
  .looseObject({
    schema: z.literal(RECORD_SCHEMA),
    branch: count,
    step: count,
    parent: z.looseObject({ step: count, manifestSha256: sha256 }).nullable(),
    inputsSha256: sha256,
    /** What cards and commands show to a shell, too. */
    baseModel: z.string().max(200).regex(BASE_MODEL_PATTERN),
    baseModelSha256: sha256,
    adapter: blob,
    adapterConfig: blob,
    optimizer: blob,
    groups: z.array(tolerant(GroupRef)),
    learningRate: z.number().min(0),
    metrics: StepMetrics,
    platform: z.record(z.string(), z.union([z.string(), z.number()])),
    seed: count,
    /** Null in a run's first commit, for which nothing is trained. */
    train: tolerant(TrainConfig).nullable(),
    /** Where the groups were sampled from an older checkpoint than the parent. */
    sampler: tolerant(Sampler).optional(),
    /** The examples that were trained. Absent: the step trained its groups. */
    supervised: tolerant(SupervisedStep).optional(),
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

/** Throws StoreCorrupt or LaterVersion, with the manifest's name. */
export function parseCommit(bytes: Uint8Array, key: string): Commit {
  return { manifest: parseStored(ManifestSchema, decodeJson(bytes, key), key), sha256: hashBytes(bytes) };
}

export function checkpointOf(run: string, { manifest, sha256: manifestSha256 }: Commit): Checkpoint {
  const { branch, step, adapter } = manifest;
  return { run, branch, step, manifestSha256, adapterSha256: adapter.sha256 };
}

/** What a supervised step was made from, as an input of a step has it. */
export function suppliedExamples({ supervised }: Manifest): Pick<Manifest, 'supervised'> {
  return supervised === undefined ? {} : { supervised };
}
