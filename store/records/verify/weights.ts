/** A checkpoint's blobs, and whether the step changed anything. */
import type { BlobRef } from '../../../core/contract/contract.ts';
import type { StepPlace } from '../../layout.ts';
import { isPruned } from '../runs/pruned.ts';
import { MAIN_POLICY } from '../../../core/contract/wire-constants.ts';
import { policiesOf, type Commit } from '../runs/manifest.ts';
import { blobsOfStep } from '../runs/references.ts';
import type { StoredStep } from './chain.ts';
import type { VerifyContext } from './context.ts';
import type { Check } from './findings.ts';

/** Blobs are shared between steps: each is read once. */
export type SeenBlobs = Set<string>;

export async function verifyWeights(context: VerifyContext, step: StoredStep, seen: SeenBlobs): Promise<void> {
  if (step.commit === null) return;
  const { commit } = step;
  const { manifest } = commit;
  await verifyBlob(context, { ...step, commit }, 'adapters', manifest.adapterConfig, seen);
  for (const [, { adapter, optimizer }] of policiesOf(manifest)) {
    await verifyBlob(context, { ...step, commit }, 'adapters', adapter, seen);
    await verifyBlob(context, { ...step, commit }, 'optimizer states', optimizer, seen);
  }
  if (!context.isLoop) return;
  // Those of a run are verified with its run.json.
  for (const ref of blobsOfStep(manifest)) await verifyBlob(context, { ...step, commit }, 'run files', ref, seen);
}

async function verifyBlob(
  { store, findings }: VerifyContext,
  step: StepPlace & { readonly commit: Commit },
  check: Check,
  ref: BlobRef,
  seen: SeenBlobs,
): Promise<void> {
  if (seen.has(ref.sha256)) return;
  if (await isPruned(store, step, step.commit, ref)) return findings.count(check, 'pruned');
  seen.add(ref.sha256);
  findings.count(check);
  await findings.attempt(check, ref.key, () => store.getBlob(ref));
}

/** A step that moved nothing has trained nothing, unless it was not meant to. */
export function verifyChange({ findings }: VerifyContext, step: StoredStep, parent: Commit): void {
  const { learningRate, metrics, roles } = step.commit!.manifest;
  if (learningRate === 0 || step.step === 0) return;
  const [before, after] = [parent.manifest, step.commit!.manifest].map((each) => new Map(policiesOf(each)));
  for (const policy of new Set(Object.values(roles ?? { [MAIN_POLICY]: MAIN_POLICY }))) {
    const [prefix, its] = policy === MAIN_POLICY ? ['', 'its adapter'] : [`${policy}/`, `its adapter of ${policy}`];
    const tokens = metrics[`${prefix}trainedTokens`];
    // One of several policies may have had no signal: then it was not updated.
    const isStill = tokens === 0 || (roles !== undefined && metrics[`${prefix}gradNorm`] === undefined);
    if (isStill || after!.get(policy)?.adapter.sha256 !== before!.get(policy)?.adapter.sha256) continue;
    const finding = `${its} equals its parent's, although it trained ${tokens} tokens`;
    findings.problem('manifests', step.key, finding, `roll back to step ${parent.manifest.step} and train it again`);
  }
}
