/** The engine of a run, decided before the run is planned, and configurations that it or the trainer can't compute. */
import { badConfig } from '../../core/contract/failures.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import type { EngineKind } from '../../core/contract/engine.ts';
import { checkTraining, mergeEngineConfig } from '../../core/rules/engine-rules.ts';
import { isOverlapping } from '../../core/plan/step.ts';
import { hasWindow } from '../../core/plan/window.ts';
import { loadConfig, type MergedEngine } from '../../workers/config/config.ts';
import { findDevices } from '../../workers/devices/devices.ts';
import { loadedBase, type LoadedBase } from '../../workers/config/loaded-base.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { engineOverrides, type EngineFlags } from '../command-line/engine-flags.ts';
import { countPolicies } from '../../core/rules/roles.ts';
import { isSupervisedOnly } from '../../core/rules/supervised.ts';
import { findNewestCheckpoint, findCurrentCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { readManifest, type StoredRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { decideEngine, type EngineDecision } from '../../workers/local-stack/decide-engine.ts';
import { cacheFolder } from '../../workers/project/folders.ts';

type Place = Pick<CommandEnvironment, 'project' | 'env'>;

/** `flags`: null for a command that starts no engine. */
export async function checkEngine({ train }: RunConfig, flags: EngineFlags | null, place: Place): Promise<void> {
  checkTraining(await engineOf(flags, place), train);
}

/**
 * A run that is `recorded` goes on as it is. Corrections compare the sampler with the trainer before its first update, and
 * in float32 the embedded engine computes what the trainer does. `usual`: what samples unless flags or the configuration
 * say so.
 */
export async function refuseIdleCorrection(
  asked: RunConfig,
  recorded: RunConfig | null,
  flags: EngineFlags | null,
  place: Place,
  usual: EngineKind = 'embedded',
): Promise<void> {
  const { correction } = asked.train;
  if (recorded !== null || correction === 'none' || isOverlapping(asked) || hasWindow(asked)) return;
  const { kind } = await engineOf(flags, place, usual);
  if (kind !== 'embedded' || (await findLoadedBase(flags, place))?.dtype !== 'float32') return;
  throw badConfig(
    `--correction ${correction} has no effect with the embedded engine in float32 and --max-staleness 0: sampler and trainer agree up to rounding; pass --correction none, or leave it out`,
  );
}

/** Null where an engine elsewhere decides. */
export async function findLoadedBase(flags: EngineFlags | null, place: Place): Promise<LoadedBase | null> {
  const engine = await engineOf(flags, place);
  if (engine.url !== null) return null;
  // GPU workers that this command does not start may have GPUs.
  const hasGpus = flags === null || (await findDevices(engine, place.env)).gpus.length > 0;
  return loadedBase(engine, hasGpus);
}

async function engineOf(flags: EngineFlags | null, { project, env }: Place, usual?: EngineKind): Promise<MergedEngine> {
  return mergeEngineConfig(
    (await loadConfig(project, env)).engine,
    flags === null ? {} : engineOverrides(flags),
    usual,
  );
}

/** By the machine, the run's options and its earlier engine. `known`: the run of this name in the store. */
export async function decideRunEngine(
  config: RunConfig,
  known: StoredRun | null,
  store: Store,
  flags: EngineFlags,
  { project, env }: Place,
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
