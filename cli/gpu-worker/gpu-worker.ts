import { loadConfig, type ChosenEngine, type EngineConfig } from '../../workers/config/config.ts';
import { ANY_USE, decideEngine, describeDecision } from '../../workers/local-stack/decide-engine.ts';
import { chosenEngine, type AskedEngine, type EngineKind } from '../../workers/config/engine-choices.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { runGpuWorker } from '../../workers/local-stack/children/gpu-worker.ts';
import { checkQuantization } from '../../workers/config/quantization.ts';
import type { CommandContext } from '../command-line/command.ts';
import { UsageError, WorkFailed, EXIT } from '../command-line/errors.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { gpuWorkerCommand } from './command.ts';

type Context = CommandContext<typeof gpuWorkerCommand>;

export async function serveAndTrain({ flags, project, env, output, signal }: Context): Promise<number> {
  const onEvent = createEventPrinter((line) => output.line(line));
  if (flags['no-train']) refuseTrainingFlags(flags);
  const configured = await loadConfig(project, env);
  const decided = await decideEngine(configured.engine, askedOf(flags), ANY_USE, { env, cache: cacheFolder(env) });
  const config = { ...configured, engine: engineOf(configured.engine, flags, decided.kind) };
  checkQuantization(config.engine);
  const line = describeDecision(decided);
  if (line !== null) output.line(line);
  const code = await runGpuWorker({ project, env, signal, onEvent, flags: pythonFlags(flags) }, config);
  // The worker itself has said what is wrong with its host, its port or its store.
  if (code === EXIT.ok || code === EXIT.usage) return code;
  if (signal.aborted) return EXIT.ok;
  throw new WorkFailed(`the GPU worker ended (${code ?? 'killed'}); see its last lines, then start it again`);
}

function refuseTrainingFlags(flags: Context['flags']): void {
  const idle = (['devices', 'shard-base-model'] as const).find((name) => flags[name]);
  if (idle === undefined) return;
  throw new UsageError(
    `--${idle} has no effect with --no-train (it says how base models are trained); leave one of them out`,
  );
}

function askedOf(flags: Context['flags']): AskedEngine {
  const { device, dtype, devices, 'shard-base-model': shardBaseModel, 'load-in-4bit': loadIn4bit } = flags;
  return { device, dtype, devices, shardBaseModel, loadIn4bit };
}

function engineOf(configured: EngineConfig, flags: Context['flags'], kind: EngineKind): ChosenEngine {
  const chosen = chosenEngine(configured, askedOf(flags), kind);
  const engine = { ...chosen, threads: flags.threads ?? configured.threads };
  // What the project says of training is for its other GPU workers.
  return flags['no-train'] ? { ...engine, devices: 1, shardBaseModel: false, compileLayers: false } : engine;
}

function pythonFlags({ host, port, 'allow-host': allowed, 'no-train': isEngineAlone }: Context['flags']): string[] {
  const place = Object.entries({ host, port }).flatMap(([name, value]) =>
    value === null ? [] : [`--${name}=${value}`],
  );
  return [...place, ...(isEngineAlone ? ['--no-temporal'] : []), ...allowed.map((name) => `--allow-host=${name}`)];
}
