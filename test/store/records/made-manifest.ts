import { sha256Hex } from '../../../core/text/hashes.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import type { Manifest } from '../../../store/records/runs/manifest.ts';

/** A commit as readers need it; nothing that it names is in the store. */
export function madeManifest(
  place: { branch: number; step: number },
  said: Partial<Manifest> & { adapterSha256?: string } = {},
): Manifest {
  const { adapterSha256 = sha256Hex(`adapter ${place.branch} ${place.step}`), ...others } = said;
  const blob = (sha256: string) => ({ key: `blobs/${sha256}`, sha256, bytes: 1 });
  return {
    schema: 1,
    ...place,
    parent: null,
    inputsSha256: sha256Hex('inputs'),
    baseModel: 'pocket',
    baseModelSha256: sha256Hex('pocket'),
    adapter: blob(adapterSha256),
    adapterConfig: blob(sha256Hex('config')),
    optimizer: blob(sha256Hex('optimizer')),
    groups: [],
    learningRate: 0,
    metrics: {},
    platform: {},
    seed: 1,
    train: place.step === 0 ? null : defaultRunConfig({ run: 'demo', agent: 'toy', baseModel: 'pocket' }).train,
    ...others,
  };
}
