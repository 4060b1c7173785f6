/** Commits of steps: manifests and their hashes. */
import {
  Manifest,
  type BlobRef,
  type Checkpoint,
  type PolicyFiles,
  type TrainInput,
} from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { policyName } from '../../../core/names/policy-name.ts';
import { MAIN_POLICY } from '../../../core/contract/wire-constants.ts';
import { decodeJson } from '../../bytes/json.ts';
import { hashBytes } from '../../bytes/sha256.ts';
import { parseStored, tolerant } from '../file-schemas.ts';

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
  const others = Object.entries(policies ?? {}).map(([policy, weights]) => [policy, weights.adapter.sha256] as const);
  const adapters = others.length === 0 ? {} : { adapters: Object.fromEntries(others) };
  return { run, branch, step, manifestSha256, adapterSha256: adapter.sha256, ...adapters };
}

/** The part of a manifest that names adapters and optimizer states. */
export type NamedWeights = Pick<Manifest, 'adapter' | 'optimizer' | 'policies'>;

/** Weights of each policy, the main one first. */
export function policiesOf({ adapter, optimizer, policies }: NamedWeights): [string, PolicyFiles][] {
  return [[MAIN_POLICY, { adapter, optimizer }], ...Object.entries(policies ?? {})];
}

/** Adapters and optimizer states of all policies. */
export function weightsOf(manifest: NamedWeights): BlobRef[] {
  return policiesOf(manifest).flatMap(([, { adapter, optimizer }]) => [adapter, optimizer]);
}

/** Refused if the checkpoint has no such policy. */
export function adapterOfPolicy(run: string, manifest: Manifest, policy: string = MAIN_POLICY): BlobRef {
  const policies = new Map(policiesOf(manifest));
  const found = policies.get(policy)?.adapter;
  if (found !== undefined) return found;
  const known = [...policies.keys()].join(', ');
  throw badConfig(
    `${policyName({ run, ...manifest })} has no policy ${policy} (it has ${known}); name one of them after a colon, or leave it out for ${MAIN_POLICY}`,
  );
}

/** Inputs of a trained step but its parent; null in a run's first commit. */
export function trainingOf(manifest: Manifest): Omit<TrainInput, 'run' | 'parent' | 'inputsSha256'> | null {
  const { branch, step, baseModel, groups, learningRate, seed, train } = manifest;
  if (train === null) return null;
  const { samplers, supervised, roles, league } = manifest;
  const played = { ...(roles && { roles }), ...(league && { league }) };
  const supplied = { ...(samplers && { samplers }), ...(supervised && { supervised }), ...played };
  return { branch, step, baseModel, groups, learningRate, seed, train, ...supplied };
}
