/** Commits of steps: manifests and their hashes. */
import { Manifest, type Checkpoint } from '../../core/contract.ts';
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
  const { branch, step, adapter } = manifest;
  return { run, branch, step, manifestSha256, adapterSha256: adapter.sha256 };
}

/** Examples of a supervised step, in the form of a step's inputs. */
export function suppliedExamples({ supervised }: Manifest): Pick<Manifest, 'supervised'> {
  return supervised === undefined ? {} : { supervised };
}
