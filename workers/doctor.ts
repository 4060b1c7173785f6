/** What Temper needs, looked at one by one: each check says what it found and what to do. The command line prints them. */
import { connectClient, configuredTarget } from './connection.ts';
import type { TemporalClient, TemporalTarget } from './connection.ts';
import { loadConfig } from './config.ts';
import type { TemperConfig } from './config.ts';
import { cacheFolder, projectFolders, storeUri } from './folders.ts';
import type { ProjectFolders } from './folders.ts';
import { isAlive } from './local-stack/processes.ts';
import { readStackFile } from './local-stack/stack-file.ts';
import { missingSearchAttributes } from './namespace.ts';
import { pythonState } from './python-environment.ts';
import { rolloutQueue } from '../core/queues.ts';
import { openStore } from '../store/open-store.ts';
import { findInstalledCli, readDatabaseServer } from './temporal-cli.ts';

export interface Check {
  readonly name: string;
  /** Null where it could not be looked at, or concerns nothing that runs now. */
  readonly ok: boolean | null;
  readonly detail: string;
  /** What to do; null where there is nothing to do. */
  readonly remedy: string | null;
}

export interface DoctorOptions {
  readonly project: string;
  readonly env: NodeJS.ProcessEnv;
  /** Names of agents whose queues should be polled. */
  readonly agents: readonly string[];
}

interface Patient extends DoctorOptions {
  readonly config: TemperConfig;
  readonly folders: ProjectFolders;
  readonly target: TemporalTarget | null;
}

const OLDEST_NODE = [20, 19];
const ENGINE_WITHIN_MS = 5000;

export async function examine(options: DoctorOptions): Promise<Check[]> {
  const folders = projectFolders(options.project);
  const patient: Patient = { ...options, folders, config: await loadConfig(options.project), target: runningTarget(folders, options.env) };
  const checks = await Promise.all([checkNode(), checkPython(patient), checkTemporalCli(patient), checkStore(patient), checkEngine(patient), checkServer(patient)]);
  return checks.flat();
}

/** The configured server, or that of the project's local stack while it runs. */
function runningTarget(folders: ProjectFolders, env: NodeJS.ProcessEnv): TemporalTarget | null {
  const configured = configuredTarget(env);
  if (configured !== null) return configured;
  const stack = readStackFile(folders.stackFile);
  const isRunning = stack !== null && isAlive({ name: 'leash', pid: stack.pid, startTime: stack.startTime });
  return isRunning && stack.ports !== null ? { address: `127.0.0.1:${stack.ports.temporal}`, namespace: 'default' } : null;
}

const passed = (name: string, detail: string): Check => ({ name, ok: true, detail, remedy: null });
const failed = (name: string, detail: string, remedy: string): Check => ({ name, ok: false, detail, remedy });
const notRunning = (name: string): Check => ({ name, ok: null, detail: 'no local stack runs in this project', remedy: 'temper dev starts one, temper train does so by itself' });

/** A check that throws has failed: its message names the remedy. */
async function attempt(name: string, check: () => Promise<string>): Promise<Check> {
  try {
    return passed(name, await check());
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const [detail = message, ...remedy] = message.split('; ');
    return failed(name, detail, remedy.join('; ') || 'see the log files in .temper/logs');
  }
}

function checkNode(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isNewEnough = major > (OLDEST_NODE[0] ?? 0) || (major === OLDEST_NODE[0] && minor >= (OLDEST_NODE[1] ?? 0));
  return isNewEnough ? passed('Node', process.versions.node) : failed('Node', process.versions.node, 'install Node 20.19 or newer');
}

function checkPython({ config, env }: Patient): Promise<Check> {
  if (config.engine.url !== null) return Promise.resolve(passed('Python environment', `not needed: the engine is ${config.engine.url}`));
  return attempt('Python environment', () => pythonState({ env, cache: cacheFolder(env) }));
}

function checkTemporalCli({ env, folders }: Patient): Promise<Check> {
  const configured = configuredTarget(env);
  if (configured !== null) return Promise.resolve(passed('Temporal CLI', `not needed: the server is ${configured.address}`));
  return attempt('Temporal CLI', async () => {
    const databaseServer = readDatabaseServer(folders.temporalVersion, folders.database);
    const cli = await findInstalledCli({ env, cache: cacheFolder(env), databaseServer });
    return cli === null ? 'none yet; the first start downloads or builds one' : `${cli.path} (server ${cli.serverVersion})`;
  });
}

function checkStore({ config, folders }: Patient): Promise<Check> {
  return attempt('store', async () => {
    const store = await openStore(storeUri(config.store, folders));
    await store.checkWritable();
    return store.uri;
  });
}

async function checkEngine({ config, folders, target }: Patient): Promise<Check> {
  const port = readStackFile(folders.stackFile)?.ports?.engine;
  const url = config.engine.url ?? (target === null || port === undefined ? null : `http://127.0.0.1:${port}`);
  if (url === null) return notRunning('engine');
  return attempt('engine', async () => {
    try {
      const response = await fetch(new URL('/health', url), { signal: AbortSignal.timeout(ENGINE_WITHIN_MS) });
      if (response.ok) return `${url} answers`;
      throw new Error(`status ${response.status}`);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${url} does not answer as it should (${reason}); look into .temper/logs/gpu-worker.jsonl, or correct engine.url in temporal.config.ts`, { cause });
    }
  });
}

async function checkServer(patient: Patient): Promise<Check[]> {
  const { target, env } = patient;
  if (target === null) return [notRunning('Temporal server')];
  let client: TemporalClient | null = null;
  const reached = await attempt('Temporal server', async () => {
    client = await connectClient(target, env);
    return `${target.address} answers`;
  });
  const connected = client as TemporalClient | null;
  if (connected === null) return [reached];
  try {
    return [reached, await checkNamespace(connected), await checkSearchAttributes(connected), ...(await checkQueues(connected, patient))];
  } finally {
    await connected.close();
  }
}

function checkNamespace({ connection, namespace }: TemporalClient): Promise<Check> {
  return attempt('namespace', async () => {
    const { config } = await connection.workflowService.describeNamespace({ namespace });
    const days = Math.round(Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) / 86_400);
    return `${namespace}, finished runs are kept for ${days} days`;
  });
}

function checkSearchAttributes(client: TemporalClient): Promise<Check> {
  return attempt('search attributes', async () => {
    const missing = await missingSearchAttributes(client);
    if (missing.length === 0) return 'all registered';
    throw new Error(`${missing.join(', ')} missing; run temporal operator search-attribute create --namespace ${client.namespace} --name … --type …`);
  });
}

/** A queue that nobody polls waits in silence: the commonest reason for a run that stands still. */
async function checkQueues(client: TemporalClient, { config, folders, agents, project }: Patient): Promise<Check[]> {
  const store = await openStore(storeUri(config.store, folders));
  const storeId = agents.length === 0 ? '' : await store.id();
  const queues = [
    { name: config.queues.workflows, kind: 'workflow', remedy: 'start temper dev or temper worker' },
    { name: config.queues.gpu, kind: 'activity', remedy: 'start a GPU worker, or temper dev' },
    ...agents.map((agent) => ({ name: rolloutQueue(storeId, agent), kind: 'activity', remedy: `start temper worker --agent FILE in ${project}, or temper train` })),
  ] as const;
  return Promise.all(queues.map(({ name, kind, remedy }) =>
    attempt(`queue ${name}`, async () => {
      const pollers = await countPollers(client, name, kind);
      if (pollers === 0) throw new Error(`nobody polls it; ${remedy}`);
      return `${pollers} ${pollers === 1 ? 'worker polls' : 'workers poll'} it`;
    }),
  ));
}

async function countPollers({ connection, namespace }: TemporalClient, queue: string, kind: 'workflow' | 'activity'): Promise<number> {
  // Enum values of temporal.api.enums.v1.TaskQueueType.
  const { pollers } = await connection.workflowService.describeTaskQueue({ namespace, taskQueue: { name: queue }, taskQueueType: kind === 'workflow' ? 1 : 2 });
  return pollers.length;
}
