/** Blobs that configurations and steps name besides weights. Ended runs are verified against them, too. */
import type { BlobRef, RunConfig } from '../../../core/contract/contract.ts';
import type { Manifest } from './manifest.ts';

/** The adapter that steps charge a divergence from, if any. */
export function referencesOf(
  named: { readonly train?: { klReference?: BlobRef | undefined } | null } | null,
): BlobRef[] {
  return [named?.train?.klReference ?? []].flat();
}

/** Without the chat template, of which a configuration has the hash alone. */
export function blobsOfConfig(config: RunConfig): BlobRef[] {
  const { supervised, production, startAdapter } = config;
  const data = [...(supervised ? [supervised.dataset] : []), ...(production ? [production.recordings] : [])];
  return [...data, ...referencesOf(config), ...Object.values(startAdapter ?? {})];
}

/** A script brings examples, and names what steps are compared with, step by step. */
export function blobsOfStep(manifest: Manifest): BlobRef[] {
  const { supervised } = manifest;
  return [...(supervised ? [supervised.rendering.dataset] : []), ...referencesOf(manifest)];
}
