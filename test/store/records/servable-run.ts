/** A run with one checkpoint whose weights can be served: an untrained adapter, which changes nothing that its base model says. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunConfig } from '../../../core/contract/contract.ts';
import { canonicalJson, sha256Hex } from '../../../core/text/hashes.ts';
import { planInitialise } from '../../../core/plan/step.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import * as layout from '../../../store/layout.ts';
import { publishRun } from '../../../store/records/runs/publish-run.ts';
import { projectFolders } from '../../../workers/project/folders.ts';

export interface ServableRun {
  readonly project: string;
  readonly run: string;
  readonly baseModel: string;
  /** The folder that `bench/make_adapter.py` makes for this base model. */
  readonly adapter: string;
  readonly rollout: Partial<RunConfig['rollout']>;
}

/** It is served as `run@0`. */
export async function makeServableRun({ project, run, baseModel, adapter, rollout }: ServableRun): Promise<void> {
  const store = await openStore(projectFolders(project).store);
  const config = defaultRunConfig({ run, agent: 'none', baseModel, rollout });
  await publishRun(store, { config, agentCodeSha256: sha256Hex('none') });
  const { inputsSha256, seed } = planInitialise(config, 0);
  const manifest = {
    schema: 1,
    branch: 0,
    step: 0,
    parent: null,
    inputsSha256,
    baseModel,
    baseModelSha256: readFileSync(join(adapter, 'base-model.sha256'), 'utf8'),
    adapter: await store.putBlob(readFileSync(join(adapter, 'adapter_model.safetensors'))),
    adapterConfig: await store.putBlob(readFileSync(join(adapter, 'adapter_config.json'))),
    optimizer: await store.putBlob(new Uint8Array()),
    groups: [],
    learningRate: 0,
    metrics: {},
    platform: {},
    seed,
    train: null,
  };
  const bytes = new TextEncoder().encode(`${canonicalJson(manifest)}\n`);
  await store.publish(layout.manifestKey({ run, branch: 0, step: 0 }), bytes);
}
