import { expect, onTestFinished, test } from 'vitest';
import type { TemperError } from '../../../core/contract/failures.ts';
import { logArtifact, type WandbArtifact } from '../../../outbound/track/wandb-artifact.ts';
import { seededFaults } from '../stand-in.ts';
import { startWandb } from './wandb-stand-in.ts';

const ADAPTER: WandbArtifact = {
  entity: 'team',
  project: 'demo',
  runId: 'demo-1',
  name: 'demo-lora',
  type: 'lora',
  metadata: { 'wandb.base_model': 'Qwen/Qwen3-4B' },
  aliases: ['step2', 'latest'],
  files: [{ path: 'adapter_config.json', bytes: new TextEncoder().encode('{}') }],
  storageRegion: null,
};

test.each([1, 2])('with lost answers and refusals (seed %i), an artifact is committed once, whole', async (seed) => {
  const wandb = await startWandb({ fault: seededFaults(seed) });
  onTestFinished(() => wandb.close());
  const { signal } = new AbortController();
  const caller = { system: 'Weights & Biases', keyVariable: 'WANDB_API_KEY', key: wandb.key, fetch, signal };
  const log = async (artifact: WandbArtifact): Promise<string> => {
    for (;;) {
      try {
        return await logArtifact({ caller, baseUrl: wandb.url }, artifact);
      } catch (error) {
        if ((error as TemperError).type !== 'TargetUnavailable') throw error;
      }
    }
  };
  const first = await log(ADAPTER);
  expect(await log(ADAPTER)).toBe(first);
  const weights = { path: 'adapter_model.safetensors', bytes: new Uint8Array(5000).fill(7) };
  await log({ ...ADAPTER, aliases: ['step4', 'latest', 'best'], files: [...ADAPTER.files, weights] });

  expect(wandb.artifacts.map(({ state, aliases }) => ({ state, aliases: [...new Set(aliases)] }))).toEqual([
    { state: 'COMMITTED', aliases: ['step2'] },
    { state: 'COMMITTED', aliases: ['step4', 'latest', 'best'] },
  ]);
  // The digest that W&B's client 0.31 sends for the same files.
  expect(wandb.artifacts[0]?.digest).toBe('a472465842ca59b78b3a74956683eb19');
  expect([...(wandb.artifacts[1]?.files.get(weights.path) ?? [])]).toEqual([...weights.bytes]);
  expect(wandb.violations).toEqual([]);
});
