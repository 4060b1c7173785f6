/** Commits of steps: manifests and their hashes. */
import { Manifest, type Checkpoint, type TrainInput } from '../../core/contract.ts';
import { decodeJson } from '../bytes/json.ts';
import { hashBytes } from '../bytes/sha256.ts';
import { parseStored, tolerant } from './file-schemas.ts';

const ManifestSchema = tolerant(Manifest).refine(({ step, train }) => step === 0 || train !== null, {
  path: ['train'],
  message: 'missing for a trained step',
});

export type { Manifest };

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
  const { branch, step, adapter, policies } = manifest;
  const others = Object.entries(policies ?? {}).map(([name, files]) => [name, files.adapter.sha256] as const);
  const adapters = policies === undefined ? {} : { adapters: Object.fromEntries(others) };
  return { run, branch, step, manifestSha256, adapterSha256: adapter.sha256, ...adapters };
}

/** Inputs of a trained step but its parent; null in a run's first commit. */
export function trainingOf(manifest: Manifest): Omit<TrainInput, 'run' | 'parent' | 'inputsSha256'> | null {
  const { branch, step, baseModel, groups, learningRate, seed, train, sampler, supervised, roles, league } = manifest;
  if (train === null) return null;
  const supplied = {
    ...(sampler && { sampler }),
    ...(supervised && { supervised }),
    ...(roles && { roles }),
    ...(league && { league }),
  };
  return { branch, step, baseModel, groups, learningRate, seed, train, ...supplied };
}
