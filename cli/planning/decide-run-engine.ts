/** Decides a run's engine before the run is planned: by the machine, the run's options and its earlier engine. */
import type { RunConfig } from '../../core/contract.ts';
import type { EngineKind } from '../../core/contract-engine.ts';
import { countPolicies } from '../../core/roles.ts';
import { isSupervisedOnly } from '../../core/supervised.ts';
import { findNewestCheckpoint, findCurrentCheckpoint } from '../../store/records/find-checkpoint.ts';
import { readManifest, type StoredRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { decideEngine, type EngineDecision } from '../../workers/local-stack/decide-engine.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { engineOverrides, type EngineFlags } from '../command-line/engine-flags.ts';

/** `known`: the run of this name in the store, where there is one. */
export async function decideRunEngine(
  config: RunConfig,
  known: StoredRun | null,
  store: Store,
  flags: EngineFlags,
  { project, env }: Pick<CommandEnvironment, 'project' | 'env'>,
): Promise<EngineDecision> {
  const use = {
    trained: [config.train.lora],
    policies: countPolicies(config),
    samples: !isSupervisedOnly(config),
    ...(known === null ? {} : { before: () => samplerOf(known, store) }),
  };
  const { engine } = await loadConfig(project, env);
  return decideEngine(engine, engineOverrides(flags), use, { env, cache: cacheFolder(env) });
}

/** Engine of the run's newest checkpoint; null without one. The embedded engine has no name in manifests. */
async function samplerOf({ file, state }: StoredRun, store: Store): Promise<EngineKind | null> {
  const { run } = file.config;
  const standing =
    (state && (await findCurrentCheckpoint(store, state))) ?? (await findNewestCheckpoint(store, run, Infinity));
  const manifest = standing && (await readManifest(store, standing));
  if (manifest === null) return null;
  return String(manifest.platform['engine'] ?? '').startsWith('vllm') ? 'vllm' : 'embedded';
}
