import { WorkFailed } from '../../core/contract/failures.ts';
import type { EngineKind, GpuWorkerSettings } from '../../core/contract/engine.ts';
import { checkStartedEngine, mergeEngineConfig } from '../../core/rules/engine-rules.ts';
import { loadConfig, type EngineConfig, type MergedEngine } from '../../workers/config/config.ts';
import { ANY_USE, decideEngine, describeDecision } from '../../workers/local-stack/decide-engine.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { runGpuWorker } from '../../workers/local-stack/children/gpu-worker.ts';
import type { CommandContext } from '../command-line/command.ts';
import { engineOverrides } from '../command-line/engine-flags.ts';
import { checkAllowedHosts } from '../command-line/listening.ts';
import { EXIT } from '../command-line/errors.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { gpuWorkerCommand } from './command.ts';

type Context = CommandContext<typeof gpuWorkerCommand>;

export async function serveAndTrain({ flags, project, env, output, signal }: Context): Promise<number> {
  const onEvent = createEventPrinter((line) => output.line(line));
  const configured = await loadConfig(project, env);
  const place = { env, cache: cacheFolder(env) };
  const decided = await decideEngine(configured.engine, engineOverrides(flags), ANY_USE, place);
  const config = { ...configured, engine: engineOf(configured.engine, flags, decided.kind) };
  checkStartedEngine(config.engine);
  const line = describeDecision(decided);
  if (line !== null) output.line(line);
  const code = await runGpuWorker({ project, env, signal, onEvent, place: placeOf(flags) }, config);
  // The worker itself has said what is wrong with its host, its port or its store.
  if (code === EXIT.ok || code === EXIT.usage) return code;
  if (signal.aborted) return EXIT.ok;
  throw new WorkFailed(`the GPU worker ended (${code ?? 'killed'}); see its last lines, then start it again`);
}

function engineOf(configured: EngineConfig, flags: Context['flags'], kind: EngineKind): MergedEngine {
  const merged = mergeEngineConfig(configured, engineOverrides(flags), kind);
  const engine = { ...merged, threads: flags.threads ?? configured.threads };
  // Training settings of the project are for its other GPU workers.
  return flags['no-train'] ? { ...engine, devices: 1, shardBaseModel: false } : engine;
}

function placeOf(flags: Context['flags']): Partial<GpuWorkerSettings> {
  const { host, port, 'allow-host': allowHost, 'no-train': isEngineAlone } = flags;
  checkAllowedHosts(host, allowHost);
  return {
    ...(host === null ? {} : { host }),
    ...(port === null ? {} : { port }),
    allowHost: [...allowHost],
    role: isEngineAlone ? 'sample' : 'train',
  };
}
