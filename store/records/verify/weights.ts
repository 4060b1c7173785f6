/** A checkpoint's blobs, and whether the step changed anything. */
import type { BlobRef } from '../../../core/contract.ts';
import type { StepPlace } from '../../layout.ts';
import { isPruned } from '../pruned.ts';
import type { Commit } from '../manifest.ts';
import { blobsOfStep } from '../references.ts';
import type { StoredStep } from './chain.ts';
import type { VerifyContext } from './context.ts';
import type { Check } from './findings.ts';

/** Blobs are shared between steps: each is read once. */
export type SeenBlobs = Set<string>;

export async function verifyWeights(context: VerifyContext, step: StoredStep, seen: SeenBlobs): Promise<void> {
  if (step.commit === null) return;
  const { adapter, adapterConfig, optimizer } = step.commit.manifest;
  await verifyBlob(context, step, 'adapters', adapter, seen);
  await verifyBlob(context, step, 'adapters', adapterConfig, seen);
  await verifyBlob(context, step, 'optimizer states', optimizer, seen);
  if (!context.isLoop) return;
  // Those of a run are verified with its run.json.
  for (const ref of blobsOfStep(step.commit.manifest)) await verifyBlob(context, step, 'run files', ref, seen);
}

async function verifyBlob(
  { store, findings }: VerifyContext,
  place: StepPlace,
  check: Check,
  ref: BlobRef,
  seen: SeenBlobs,
): Promise<void> {
  if (seen.has(ref.sha256)) return;
  if (await isPruned(store, place, ref)) return findings.count(check, 'pruned');
  seen.add(ref.sha256);
  findings.count(check);
  await findings.attempt(check, ref.key, () => store.getBlob(ref));
}

/** A step that moved nothing has trained nothing, unless it was not meant to. */
export function verifyChange({ findings }: VerifyContext, step: StoredStep, parent: Commit): void {
  const { adapter, learningRate, metrics } = step.commit!.manifest;
  const isStill = learningRate === 0 || metrics['trainedTokens'] === 0 || step.step === 0;
  if (isStill || adapter.sha256 !== parent.manifest.adapter.sha256) return;
  const finding = `its adapter equals its parent's, although it trained ${metrics['trainedTokens']} tokens`;
  findings.problem('manifests', step.key, finding, `roll back to step ${parent.manifest.step} and train it again`);
}
