/** The command lines of the local stack's children. */
import { basename, dirname } from 'node:path';
import type { GpuWorkerSettings } from '../../../core/contract/engine.ts';
import { ENGINE_KEY_VARIABLE, VLLM_KEY_VARIABLE } from '../../../core/contract/wire-constants.ts';
import { ENGINE_URL_VARIABLE, STORE_VARIABLE } from '../../config/config.ts';
import { GPU_WORKER_FOLDER, type ProjectFolders } from '../../project/folders.ts';
import type { GpuWorkerSpec, StackDescription, StackSpec } from '../protocol/protocol.ts';
import type { StackPorts } from '../protocol/stack-file.ts';
import type { PrivateAddress } from '../../process/private-address.ts';
import type { ChildSpec } from '../../process/child-process.ts';
import { withoutLoopbackProxy } from '../../../play/programs/environment.ts';
import { withoutDoorKeys } from '../../../core/names/door-keys.ts';
import { forOwnServer, gpuWorkerEnvironment, serverEnvironment } from '../../process/child-environment.ts';
import type { WorkerProcessOptions } from '../../worker/worker-settings.ts';

/** Names of children, also of their logs. */
export const TEMPORAL_SERVER = 'temporal-server';
export const GPU_WORKER = 'gpu-worker';

export interface ChildContext {
  readonly spec: StackSpec;
  readonly folders: ProjectFolders;
  readonly ports: StackPorts;
  readonly stack: StackDescription;
  readonly engineKey: string;
  /** Address of Temporal's UI; null: no UI. */
  readonly ui: PrivateAddress | null;
}

/** The user's profiles say where other servers are. */
const NO_PROFILE = ['--disable-config-env', '--disable-config-file'];
/** Every commit is on disk before it is answered, so that nothing is lost by not waiting longer. */
const STOP_SERVER_MS = 1000;
const STOP_WORKER_MS = 8000;

/**
 * One partition of each queue, in place of four: a project's few workers would have to look into each, and what waits in
 * another one than they look into is forwarded ten times a second at most.
 */
const ONE_PARTITION = [
  '--dynamic-config-value',
  'matching.numTaskqueueReadPartitions=1',
  '--dynamic-config-value',
  'matching.numTaskqueueWritePartitions=1',
];

/** Its HTTP API would take requests from any web page: no `Host` has a space in it, so that every request gets a 403. */
const NO_HTTP_API = [
  '--dynamic-config-value',
  'frontend.httpAllowedHosts=["no host"]',
  '--dynamic-config-value',
  'system.enableNexus=false',
];

export function temporalServer({ spec, folders, ports, ui }: ChildContext): ChildSpec {
  const flags = {
    // A relative name: in a path, `#`, `?` and `%` mean something to SQLite.
    '--db-filename': basename(folders.database),
    '--ip': '127.0.0.1',
    '--port': String(ports.temporal),
    ...(ui === null ? {} : { '--ui-ip': ui.host, '--ui-port': String(ui.port) }),
    '--log-format': 'json',
    '--log-level': 'warn',
  };
  return {
    name: TEMPORAL_SERVER,
    agentFile: null,
    standbyCommand: null,
    command: [
      ...(spec.temporalCommand ?? []),
      'server',
      'start-dev',
      ...Object.entries(flags).flat(),
      ...(ui === null ? ['--headless'] : []),
      ...NO_HTTP_API,
      ...ONE_PARTITION,
      ...NO_PROFILE,
    ],
    env: serverEnvironment(process.env, folders.state),
    cwd: folders.state,
    ready: { kind: 'port', port: ports.temporal },
    stopMs: STOP_SERVER_MS,
  };
}

/** Arguments of a project's GPU worker. `place`: its address and its role. */
export function gpuWorkerArguments(
  { storeUri, queues, engine, vllmPython }: GpuWorkerSpec,
  models: string,
  place: Partial<GpuWorkerSettings>,
): string[] {
  const { url: _, keyVariable: __, ...own } = engine;
  const settings = { store: storeUri, models, queue: queues.gpu, engine: own, vllmPython, ...place };
  return ['--settings', JSON.stringify(settings), '--leash'];
}

export function gpuWorker(context: ChildContext): ChildSpec {
  const { spec, folders, ports, stack } = context;
  const { temporalAddress, namespace } = stack;
  const place = { port: ports.engine, temporalAddress, namespace };
  const env = workerEnvironment(gpuWorkerEnvironment(process.env), context);
  env.PYTHONPATH = [GPU_WORKER_FOLDER, process.env.PYTHONPATH].filter(Boolean).join(':');
  env.PYTHONUNBUFFERED = '1';
  const command = [...(spec.gpuWorkerCommand ?? []), ...gpuWorkerArguments(spec, folders.models, place)];
  return {
    name: GPU_WORKER,
    agentFile: null,
    command,
    standbyCommand: spec.standby ? [...command, '--standby'] : null,
    env,
    cwd: folders.project,
    ready: { kind: 'health', url: `${stack.engineUrl}/health` },
    stopMs: STOP_WORKER_MS,
  };
}

/** One process per agent; without an agent one that runs workflows alone. `place`: its number among the workers. */
export function typescriptWorker(
  context: ChildContext,
  name: string,
  agentFile: string | null,
  place: number,
): ChildSpec {
  const { spec, folders } = context;
  const agents = agentFile === null ? [] : [agentFile];
  const metrics = spec.metrics && { ...spec.metrics, port: spec.metrics.port + place };
  const options: WorkerProcessOptions = { project: folders.project, agents, leash: true, metrics };
  return {
    name,
    agentFile,
    command: [...spec.workerCommand, JSON.stringify(options)],
    standbyCommand: null,
    env: workerEnvironment(withoutDoorKeys({ ...process.env, [VLLM_KEY_VARIABLE]: undefined }), context),
    cwd: folders.project,
    ready: { kind: 'told' },
    stopMs: STOP_WORKER_MS,
  };
}

/** Distinguishes `examples/tic-tac-toe/agent.ts` by its folder, then by a number. */
export function workerName(agentFile: string | null, isTaken: (name: string) => boolean): string {
  const base = agentFile === null ? 'worker' : `worker-${agentWord(agentFile)}`;
  let name = base;
  for (let number = 2; isTaken(name); number++) name = `${base}-${number}`;
  return name;
}

function agentWord(agentFile: string): string {
  const stem = basename(agentFile).replace(/\.[cm]?[jt]sx?$/, '');
  const word = stem === 'agent' || stem === 'index' ? basename(dirname(agentFile)) : stem;
  return word.replaceAll(/[^A-Za-z0-9._-]/g, '_');
}

/** Workers find server, store and engine here. */
function workerEnvironment(inherited: NodeJS.ProcessEnv, { spec, stack, engineKey }: ChildContext): NodeJS.ProcessEnv {
  const env = spec.temporal ? inherited : forOwnServer(inherited, stack.temporalAddress, stack.namespace);
  return {
    ...withoutLoopbackProxy(env),
    [STORE_VARIABLE]: spec.storeUri,
    [ENGINE_URL_VARIABLE]: stack.engineUrl,
    [ENGINE_KEY_VARIABLE]: engineKey,
  };
}
