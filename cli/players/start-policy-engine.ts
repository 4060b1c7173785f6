/** Starts an engine for one checkpoint's base model, loaded as the checkpoint was trained unless flags say otherwise. */
import { checkTrainedWeights } from '../../core/rules/engine-rules.ts';
import type { EngineSettings } from '../../core/contract/engine.ts';
import type { TrainedPolicy } from '../../store/records/runs/find-policy.ts';
import type { TemperConfig } from '../../workers/config/config.ts';
import { trainedBase } from '../../workers/config/loaded-base.ts';
import { writeKnownModels } from '../../workers/base-models/known-models.ts';
import { ANY_USE, decideEngine, describeDecision } from '../../workers/local-stack/decide-engine.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { startServedEngine, type ServedEngine } from '../../workers/serving/served-engine.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';

/** Policy that the engine serves first: its base model is loaded as it was trained. */
export type LoadedPolicy = Pick<TrainedPolicy, 'manifest' | 'name' | 'config'>;

export interface PolicyEngineOptions {
  readonly project: string;
  /** Without keys of servers that the engine must not know. */
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly config: TemperConfig;
  /** Null leaves a setting to the configuration, or to how the checkpoint was trained. */
  readonly device: EngineSettings['device'] | null;
  readonly dtype: EngineSettings['dtype'] | null;
  readonly loadIn4bit: boolean;
  /** Told of installations and waits. */
  readonly tell: (line: string) => void;
  /** Told which engine was chosen, and why. */
  readonly tellChoice: (line: string) => void;
}

export async function startPolicyEngine(
  { project, env, signal, config, device, dtype, loadIn4bit, tell, tellChoice }: PolicyEngineOptions,
  { manifest, name, config: run }: LoadedPolicy,
): Promise<ServedEngine> {
  // In another type of numbers the same policy gives other tokens.
  const trained = trainedBase(manifest);
  const wanted = {
    ...config.engine,
    device: device ?? config.engine.device,
    dtype: dtype ?? trained.dtype,
    devices: 1,
    shardBaseModel: false,
    // Beside other weights, too.
    loadIn4bit: loadIn4bit || trained.loadIn4bit,
  };
  checkTrainedWeights(`${name} must be served`, wanted);
  const use = { ...ANY_USE, trained: [run.train.lora] };
  const decided = await decideEngine(wanted, {}, use, { env, cache: cacheFolder(env) });
  const why = describeDecision(decided);
  if (why !== null) tellChoice(why);
  const engine = { ...wanted, kind: decided.kind };
  return startServedEngine({
    project,
    env,
    signal,
    onEvent: createEventPrinter(tell),
    config: { ...config, engine },
    models: writeKnownModels(project, config),
    // Flags name the differences.
    anyBase: engine.dtype !== trained.dtype || engine.loadIn4bit !== trained.loadIn4bit,
  });
}
