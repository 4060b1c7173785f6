/** From configuration and machine to the stack's specification; installs what is missing. */
import { mergeEngineConfig, withPolicies } from '../../core/rules/engine-rules.ts';
import type { MergedEngine, TemperConfig } from '../config/config.ts';
import { configuredTarget } from '../connection/target.ts';
import { ANY_USE, decideEngine, describeDecision } from './decide-engine.ts';
import { requireDevices } from '../devices/devices.ts';
import { storeUri, type ProjectFolders } from '../project/folders.ts';
import type { InstallOptions } from '../install/install.ts';
import { modulePath, nodeFlags } from '../process/module-path.ts';
import { openPythonEnvironment } from '../install/python-environment.ts';
import { vllmPythonOf } from '../install/vllm-environment.ts';
import { findTemporalCli, readDatabaseServer, recordDatabaseServer } from '../install/temporal-cli.ts';
import type { LocalStackOptions } from './options.ts';
import type { StackSpec } from './protocol/protocol.ts';
import { configuredMetrics } from '../metrics/metrics-server.ts';

/** A standby takes a part of it, and the GPU worker needs the rest. */
const STANDBY_FREE_BYTES = 8 * 1024 ** 3;

interface Needs {
  readonly folders: ProjectFolders;
  readonly config: TemperConfig;
  readonly install: InstallOptions;
  readonly options: LocalStackOptions;
}

export async function specifyStack(needs: Needs): Promise<StackSpec> {
  const { folders, config, install, options } = needs;
  const temporal = configuredTarget(install.env);
  const engine = await mergeEngine(needs);
  await requireDevices(engine, install.env);
  const vllmPython = await vllmPythonOf(engine, install);
  // Both at once: one waits for the network, the other for the processor. If one fails, the other is not waited for.
  const failed = new AbortController();
  const signal = install.signal ? AbortSignal.any([install.signal, failed.signal]) : failed.signal;
  const both = [
    temporal ? Promise.resolve(null) : temporalCommand(needs, signal),
    config.engine.url === null ? gpuWorkerCommand(needs, signal) : Promise.resolve(null),
  ] as const;
  try {
    const [temporalLine, gpuWorkerLine] = await Promise.all(both);
    return {
      project: folders.project,
      temporalCommand: temporalLine,
      temporal,
      gpuWorkerCommand: gpuWorkerLine,
      standby: config.localStack.standby ?? process.availableMemory() >= STANDBY_FREE_BYTES,
      workerCommand: options.commands?.worker ?? [process.execPath, ...nodeFlags(), modulePath('./worker/worker-main')],
      engine,
      vllmPython,
      storeUri: storeUri(config.store, folders),
      queues: config.queues,
      ports: {
        temporal: config.localStack.temporalPort,
        ui: options.uiPort ?? config.localStack.uiPort,
        engine: options.enginePort ?? config.localStack.enginePort,
      },
      metrics: configuredMetrics(config, options.metricsPort),
    };
  } catch (error) {
    failed.abort(error);
    await Promise.allSettled(both);
    throw error;
  }
}

async function mergeEngine({ config, install, options }: Needs): Promise<MergedEngine> {
  const { overrides = {}, use = ANY_USE } = options;
  const decided = options.decided ?? (await decideEngine(config.engine, overrides, use, install));
  const line = describeDecision(decided);
  if (line !== null) install.onEvent({ kind: 'notice', message: line });
  return withPolicies(mergeEngineConfig(config.engine, overrides, decided.kind), decided.policies);
}

async function temporalCommand({ folders, install, options }: Needs, signal: AbortSignal): Promise<readonly string[]> {
  if (options.commands?.temporal) return options.commands.temporal;
  const databaseServer = readDatabaseServer(folders.temporalVersion, folders.database);
  const cli = await findTemporalCli({ ...install, signal, databaseServer });
  recordDatabaseServer(folders.temporalVersion, cli);
  return [cli.path];
}

async function gpuWorkerCommand({ install, options }: Needs, signal: AbortSignal): Promise<readonly string[]> {
  if (options.commands?.gpuWorker) return options.commands.gpuWorker;
  const { python } = await openPythonEnvironment({ ...install, signal });
  return [python, '-m', 'temper_gpu'];
}
