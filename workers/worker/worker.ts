/** The TypeScript worker: workflows on one queue, and each agent's activities on a separate one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import {
  NativeConnection,
  Runtime,
  Worker,
  type NativeConnectionOptions,
  type WorkerOptions,
} from '@temporalio/worker';
import { createContact } from '../../activities/contact.ts';
import { startPauseDetector } from '../../activities/pause-detector.ts';
import { storeQueue } from '../../core/names/queues.ts';
import { wakeWaitingRuns } from '../rewards/wake-run.ts';
import { openOutboundActivities } from './outbound-activities.ts';
import { openAgentActivities } from './agent-activities.ts';
import { loadConfig, type TemperConfig } from '../config/config.ts';
import { type MetricsAddress, configuredMetrics } from '../metrics/metrics-server.ts';
import { openMetrics, type OpenedMetrics, type WorkerMetrics } from '../metrics/worker-metrics.ts';
import { cacheFolder } from '../project/folders.ts';
import { openConfiguredStore } from '../config/project-store.ts';
import { createOutputLogger, temporalLogger, type Logger } from './logs.ts';
import { engineSettings } from './worker-settings.ts';
import { PATIENT_THREAD, workflowBundle } from './workflow-bundle.ts';
import { CONTACT_MS } from '../../core/contract/wire-constants.ts';
import { isPassing } from '../connection/connection.ts';

export interface RunWorkerOptions {
  readonly project: string;
  /** Agent files; without any the process runs workflows alone. */
  readonly agents: readonly string[];
  /** Ends the worker: it drains, then returns. */
  readonly signal: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  readonly logger?: Logger;
  /** Address of its metrics; null: none. Absent: as the configuration says. */
  readonly metrics?: MetricsAddress | null;
  /** In place of the configured port. */
  readonly metricsPort?: number | null;
  /** Called once it polls. */
  readonly onReady?: () => void;
}

const RECONNECT_MS = 500;
const REPORT_EVERY_MS = 5000;
/** A drained activity is retried elsewhere or later, so that waiting for it long has no use. */
const DRAIN_MS = 3000;
const FORCE_MS = 6000;
/** Recovery in seconds: a dead worker's sticky queue and its silent heartbeats must not be waited for. */
const STICKY_MS = 2000;
const HEARTBEAT_MS = 2000;
const POLLERS = 5;

/** Runs until `signal`; rejects if a worker fails. The server may come and go meanwhile. */
export async function runWorker(options: RunWorkerOptions): Promise<void> {
  const { project, env = process.env } = options;
  const config = await loadConfig(project, env);
  const { metrics: address = configuredMetrics(config, options.metricsPort) } = options;
  const metered = await openMetrics(address, config, env);
  try {
    await runMetered(options, config, metered);
  } finally {
    await metered?.metrics.close();
  }
}

async function runMetered(
  options: RunWorkerOptions,
  config: TemperConfig,
  metered: OpenedMetrics | null,
): Promise<void> {
  const { project, agents, signal, env = process.env } = options;
  const { metrics = null, port: metricsPort = null } = metered ?? {};
  const logger = options.logger ?? createOutputLogger('worker');
  installRuntime(logger, metrics);
  const opened = await openConfiguredStore(project, config);
  const store = metrics?.meterStore(opened) ?? opened;
  const [contact, pauses] = [createContact(), startPauseDetector()];
  const open = (file: string) =>
    openAgentActivities(
      file,
      { store, engine: engineSettings(config, env), contact, pauses, metrics, prices: config.prices },
      logger,
    );
  const activities = await Promise.all(agents.map(open));
  const storeId = await store.id();
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
  const connection = await connectPatiently(connectionOptions, logger, signal);
  if (connection === null) return;
  const isOver = new AbortController();
  const contacting = keepContact(connection, contact, isOver.signal);
  try {
    const client = new Client({ connection, namespace });
    const outbound = await openOutboundActivities({ project, config, store, client, contact, pauses, env, logger });
    const workflowBundlePath = await workflowBundle(cacheFolder(env), temporalLogger(logger));
    const workers = await createWorkers({ connection, namespace }, [
      { ...workflowOptions(config, storeId), workflowBundle: { codePath: workflowBundlePath } },
      ...activities.map((agent) => ({
        ...activityOptions(config),
        ...metrics?.workerOptions(),
        taskQueue: agent.queue,
        activities: agent.activities,
      })),
      { ...outboundOptions(), taskQueue: outbound.queue, activities: outbound.activities },
    ]);
    await runAll(workers, signal, () => {
      const names = activities.map(({ name }) => name);
      const queues = workers.map((worker) => worker.options.taskQueue);
      metrics?.watch({ store, client, agents: names });
      logger.info({ agents: names, queues, ...(metricsPort !== null && { metricsPort }) }, 'worker ready');
      options.onReady?.();
      wakeWaitingRuns(client, store, names).catch((error: unknown) =>
        logger.warn({ error: String(error) }, 'runs that wait for rewards could not be woken'),
      );
    });
  } finally {
    isOver.abort();
    await contacting;
    await connection.close();
    await Promise.all(activities.map((agent) => agent.close()));
    await store.close();
  }
}

/** One after the other. */
async function createWorkers(
  place: Pick<WorkerOptions, 'connection' | 'namespace'>,
  each: readonly WorkerOptions[],
): Promise<Worker[]> {
  const shared = { ...place, shutdownGraceTime: DRAIN_MS, shutdownForceTime: FORCE_MS };
  const workers: Worker[] = [];
  for (const options of each) workers.push(await Worker.create({ ...shared, ...options }));
  return workers;
}

export function workflowOptions(
  { queues, capacity }: TemperConfig,
  storeId: string,
): Omit<WorkerOptions, 'connection'> {
  return {
    taskQueue: storeQueue(storeId, queues.workflows),
    maxConcurrentWorkflowTaskExecutions: capacity.workflowTasks,
    maxConcurrentWorkflowTaskPolls: Math.min(POLLERS, capacity.workflowTasks),
    maxCachedWorkflows: capacity.cachedWorkflows,
    workflowThreadPoolSize: 1,
    stickyQueueScheduleToStartTimeout: STICKY_MS,
    ...PATIENT_THREAD,
  };
}

export function activityOptions({ capacity }: TemperConfig): Omit<WorkerOptions, 'connection' | 'taskQueue'> {
  return {
    maxConcurrentActivityTaskExecutions: capacity.rollouts,
    maxConcurrentActivityTaskPolls: Math.min(POLLERS, capacity.rollouts),
    maxHeartbeatThrottleInterval: HEARTBEAT_MS,
    defaultHeartbeatThrottleInterval: HEARTBEAT_MS,
  };
}

/** They mostly wait: each tells one target of one run. */
const OUTBOUND_AT_ONCE = 100;

function outboundOptions(): Omit<WorkerOptions, 'connection' | 'taskQueue'> {
  return {
    // Its work is found again where it was cut off.
    shutdownGraceTime: 0,
    maxConcurrentActivityTaskExecutions: OUTBOUND_AT_ONCE,
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval: HEARTBEAT_MS,
    defaultHeartbeatThrottleInterval: HEARTBEAT_MS,
  };
}

let installed = false;

/** Once per process; signals are the caller's business. */
function installRuntime(logger: Logger, metrics: WorkerMetrics | null): void {
  if (installed) return;
  installed = true;
  Runtime.install({
    logger: temporalLogger(logger),
    shutdownSignals: [],
    telemetryOptions: {
      logging: { forward: {}, filter: { core: 'WARN', other: 'ERROR' } },
      ...metrics?.telemetry(),
    },
  });
}

/** Null if a signal ended it before a server was reachable. */
async function connectPatiently(
  options: NativeConnectionOptions,
  logger: Logger,
  signal: AbortSignal,
): Promise<NativeConnection | null> {
  let reportedAt = -Infinity;
  while (!signal.aborted) {
    try {
      return await NativeConnection.connect(options);
    } catch (error) {
      if (performance.now() - reportedAt > REPORT_EVERY_MS)
        logger.warn({ address: options.address, error: String(error) }, 'waiting for the Temporal server');
      reportedAt = performance.now();
    }
    await sleep(RECONNECT_MS);
  }
  return null;
}

/** All of them, or none: what one failed for, the process fails for. */
async function runAll(workers: readonly Worker[], signal: AbortSignal, onReady: () => void): Promise<void> {
  const stop = () => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  const runs = workers.map((worker) => worker.run());
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  else onReady();
  try {
    await Promise.all(runs);
  } finally {
    stop();
    await Promise.allSettled(runs);
  }
}

/** Asks the Temporal server for an answer now and then: heartbeats are sent by the SDK, which does not tell whether they arrive. */
export async function keepContact(
  connection: NativeConnection,
  contact: ReturnType<typeof createContact>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const askedAt = Date.now();
    const { workflowService } = connection;
    const asking = connection.withDeadline(askedAt + CONTACT_MS, () => workflowService.getSystemInfo({}));
    // A refusal is an answer; what is none shows as silence.
    const answered = asking.then(
      () => true,
      (error: unknown) => !isPassing(error),
    );
    // The SDK retries beyond the deadline: a late answer says nothing about the present.
    const late = sleep(CONTACT_MS, false, { ref: false });
    if (await Promise.race([answered, late])) contact.answered(askedAt);
    await sleep(CONTACT_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
