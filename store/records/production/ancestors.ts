/** A checkpoint and the checkpoints that it was trained from, over branches and forks, by the hash of their adapter. */
import type { Checkpoint } from '../../../core/contract/contract.ts';
import { branchesPrefix, type StepPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { childNumbers } from '../children.ts';
import { checkpointOf, type Commit } from '../runs/manifest.ts';
import type { Ancestors } from './choice.ts';
import { readCommit, readRunFile } from '../runs/run-reader.ts';

/** Checkpoints before this one, as many optimizer steps back as are asked for, or as the store still has. */
export async function readAncestors(store: Store, from: Checkpoint, maxAge: number): Promise<Ancestors> {
  const ancestors = new Map<
    string,
    { branch: number; step: number; manifestSha256: string; adapterSha256: string; age: number }
  >();
  let age = 0;
  let place: StepPlace = from;
  let commit = await readCommit(store, place);
  while (commit !== null && age <= maxAge) {
    const { branch, step, manifestSha256, adapterSha256 } = checkpointOf(place.run, commit);
    if (!ancestors.has(adapterSha256))
      ancestors.set(adapterSha256, { branch, step, manifestSha256, adapterSha256, age });
    const parent = await findParent(store, place.run, commit);
    // The first commit of a fork has the weights of its parent.
    if (step > 0) age += 1;
    [place, commit] = parent === null ? [place, null] : [parent.place, parent.commit];
  }
  return ancestors;
}

interface Found {
  place: StepPlace;
  commit: Commit;
}

async function findParent(store: Store, run: string, { manifest }: Commit): Promise<Found | null> {
  const { parent } = manifest;
  if (parent === null) return null;
  if (manifest.step === 0) {
    const forked = (await readRunFile(store, run))?.parent ?? null;
    return forked && readNamed(store, forked, parent.manifestSha256);
  }
  // A branch begins on an older one.
  const branches = (await childNumbers(store, branchesPrefix(run))).filter((branch) => branch <= manifest.branch);
  for (const branch of branches.toReversed()) {
    const found = await readNamed(store, { run, branch, step: parent.step }, parent.manifestSha256);
    if (found !== null) return found;
  }
  return null;
}

/** Null: another commit is there, or none. */
async function readNamed(store: Store, place: StepPlace, sha256: string): Promise<Found | null> {
  const commit = await readCommit(store, place);
  return commit?.sha256 === sha256 ? { place, commit } : null;
}
