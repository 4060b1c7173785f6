/** All manifests of a run, and whether each is the one that its successor names as its parent. */
import { listSteps } from '../runs/checkpoints.ts';
import { childNumbers } from '../children.ts';
import type { GroupRef } from '../../../core/contract/contract.ts';
import { branchesPrefix, groupsPrefix, manifestKey, placeOfGroup, type StepPlace } from '../../layout.ts';
import { parseCommit, type Commit } from '../runs/manifest.ts';
import { listRuns, readNotedHash } from '../runs/run-reader.ts';
import { hashBytes } from '../../bytes/sha256.ts';
import type { Store } from '../../store.ts';
import type { Findings } from './findings.ts';

export interface StoredStep extends StepPlace {
  key: string;
  /** Null: there is none, or it cannot be read. */
  commit: Commit | null;
}

/** Place of a manifest's parent; it may be on another branch, or in another run. */
export interface FoundParent {
  place: StepPlace;
  commit: Commit;
}

/** Every step that has a folder, by branch; manifests that differ from the hash beside them are reported. */
export async function readChain(store: Store, run: string, findings: Findings): Promise<StoredStep[]> {
  const steps: StoredStep[] = [];
  for (const place of await listSteps(store, run)) steps.push(await readStep(store, place, findings));
  return steps;
}

async function readStep(store: Store, place: StepPlace, findings: Findings): Promise<StoredStep> {
  const key = manifestKey(place);
  const bytes = await store.read(key);
  if (bytes === null) return { ...place, key, commit: null };
  findings.count('manifests');
  const commit = await findings.attempt('manifests', key, async () => parseCommit(bytes, key));
  const noted = await readNotedHash(store, place);
  if (noted !== null && noted !== hashBytes(bytes))
    findings.problem('manifests', key, `it was committed with the hash ${noted}, but has ${hashBytes(bytes)}`);
  if (commit !== null && (commit.manifest.branch !== place.branch || commit.manifest.step !== place.step))
    findings.problem(
      'manifests',
      key,
      `it is the manifest of step ${commit.manifest.step} of branch ${commit.manifest.branch}`,
    );
  return { ...place, key, commit };
}

/** A group that a manifest trains, and the manifest's key and branch. */
export interface NamedGroup extends GroupRef {
  by: string;
  trainedOn: number;
}

/** Groups that manifests train, by the folder that they lie in: that of the step itself, or of an earlier one. */
export function namedGroups(chain: readonly StoredStep[], findings: Findings): ReadonlyMap<string, NamedGroup[]> {
  const named = new Map<string, NamedGroup[]>();
  // A manifest with a flipped bit may name others.
  for (const step of chain.filter(({ key }) => !findings.isBroken(key))) {
    for (const ref of step.commit?.manifest.groups ?? []) {
      const folder = groupsPrefix(placeOfGroup(step, ref));
      const others = named.get(folder) ?? [];
      const twin = others.find(({ group }) => group === ref.group);
      // After a rollback, another branch may train it too.
      if (twin !== undefined && (twin.trainedOn === step.branch || twin.rolloutsSha256 !== ref.rolloutsSha256))
        findings.problem('manifests', step.key, `it trains group ${ref.group} of ${folder}, as ${twin.by} does`);
      else named.set(folder, [...others, { ...ref, by: step.key, trainedOn: step.branch }]);
    }
  }
  return named;
}

/** The parent by its hash: on this branch, on another one, in the forked run. Null: it is the first, or reported. */
export async function verifyParent(
  store: Store,
  step: StoredStep,
  chain: readonly StoredStep[],
  findings: Findings,
): Promise<FoundParent | null> {
  const parent = step.commit?.manifest.parent ?? null;
  if (parent === null) return null;
  findings.count('parents');
  const ofRun = chain.filter((other) => other.step === parent.step && other !== step);
  const found = ofRun.find(({ commit }) => commit?.sha256 === parent.manifestSha256);
  if (found?.commit) return { place: found, commit: found.commit };
  const elsewhere = await findInOtherRuns(store, step, parent);
  if (elsewhere === null)
    reportMissing(step, parent, ofRun.find(({ branch }) => branch === step.branch) ?? null, findings);
  return elsewhere;
}

function reportMissing(
  { key, run, branch, step }: StoredStep,
  parent: { step: number; manifestSha256: string },
  inItsPlace: StoredStep | null,
  findings: Findings,
): void {
  // A manifest that is known to be broken is not asked for its parent's hash.
  if (findings.isBroken(key)) return;
  if (step === 0) {
    findings.notes.push(`the run that ${run} was forked from is not in this store: the link to it is not checked`);
    return;
  }
  const wanted = `${key} records its hash as ${parent.manifestSha256}`;
  if (inItsPlace?.commit)
    findings.problem('parents', inItsPlace.key, `${wanted}, but it has ${inItsPlace.commit.sha256}`);
  else findings.problem('parents', manifestKey({ run, branch, step: parent.step }), `it is missing: ${wanted}`);
}

async function findInOtherRuns(
  store: Store,
  { run }: StoredStep,
  { step, manifestSha256 }: { step: number; manifestSha256: string },
): Promise<FoundParent | null> {
  for (const other of (await listRuns(store)).filter((name) => name !== run)) {
    for (const branch of await childNumbers(store, branchesPrefix(other))) {
      const place = { run: other, branch, step };
      const bytes = await store.read(manifestKey(place));
      if (bytes !== null && hashBytes(bytes) === manifestSha256)
        return { place, commit: parseCommit(bytes, manifestKey(place)) };
    }
  }
  return null;
}
