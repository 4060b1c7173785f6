/** Metrics of a TypeScript worker at one address: its own, its runs', and those of Temporal's SDK. */
import type { Client } from '@temporalio/client';
import type { ActivityInterceptorsFactory, TelemetryOptions, WorkerOptions } from '@temporalio/worker';
import { badConfig } from '../../core/contract/failures.ts';
import { runOfWorkflowId } from '../../core/names/queues.ts';
import { METRICS_KEY_VARIABLE } from '../../core/contract/wire-constants.ts';
import type { EngineConnection } from '../../play/connections/engine-connection.ts';
import type { KeyedServer } from '../../play/transports/keyed-server.ts';
import type { Store } from '../../store/store.ts';
import { findPrivateAddress, type PrivateAddress } from '../process/private-address.ts';
import type { TemperConfig } from '../config/config.ts';
import { writeFamilies } from './exposition.ts';
import type { Histogram } from './instruments.ts';
import { meteredStore } from './metered-store.ts';
import { metricsKey, serveMetrics, type MetricsAddress } from './metrics-server.ts';
import { ProcessMetrics } from './process-metrics.ts';
import { runFamilies } from './run-families.ts';
import { WatchedRuns } from './watched-runs.ts';
import { readBoundedText } from '../../core/text/read-bounded.ts';

export interface WorkerMetricsOptions {
  readonly address: MetricsAddress;
  readonly key: string;
  /** Address at which Temporal's SDK exports its metrics; null: none. */
  readonly sdk: PrivateAddress | null;
}

export interface Watching {
  readonly store: Store;
  readonly client: Client;
  /** Names of the agents that this process plays. */
  readonly agents: readonly string[];
}

export class WorkerMetrics {
  readonly #options: WorkerMetricsOptions;
  readonly #process = new ProcessMetrics();
  #runs: WatchedRuns | null = null;
  #server: KeyedServer | null = null;

  constructor(options: WorkerMetricsOptions) {
    this.#options = options;
  }

  meterStore(store: Store): Store {
    return meteredStore(store, this.#process);
  }

  meterEngine(engine: EngineConnection, agent: string): EngineConnection {
    return meteredEngine(engine, agent, this.#process.engineCallSeconds);
  }

  /** Options with which Temporal's runtime exports its metrics to this process. */
  telemetry(): Pick<TelemetryOptions, 'metrics'> {
    const { sdk } = this.#options;
    return sdk === null ? {} : { metrics: exportTo(sdk) };
  }

  /** Options of a worker that plays an agent: it notes of which run each activity is. */
  workerOptions(): Pick<WorkerOptions, 'interceptors'> {
    return { interceptors: { activity: [this.#interceptor] } };
  }

  readonly #interceptor: ActivityInterceptorsFactory = ({ info }) => {
    const run = runOfWorkflowId(info.workflowExecution?.workflowId ?? '');
    if (run !== null) this.#runs?.tell(run);
    return {};
  };

  /** Resolves to the port. Fails if the address is taken. */
  async serve(): Promise<number> {
    const { address, key } = this.#options;
    this.#server = await serveMetrics(address, key, () => this.collect());
    return this.#server.port;
  }

  /** From now on, scrapes tell of the runs of these agents. */
  watch({ store, client, agents }: Watching): void {
    this.#runs = new WatchedRuns({ store, client, agents, metrics: this.#process });
  }

  async collect(): Promise<string> {
    const [runs, sdk] = await Promise.all([this.#runs?.collect() ?? [], this.#readSdk()]);
    return writeFamilies([...runFamilies(runs), ...this.#process.families()]) + sdk;
  }

  async close(): Promise<void> {
    this.#process.close();
    await this.#server?.close();
  }

  async #readSdk(): Promise<string> {
    const { sdk } = this.#options;
    if (sdk === null) return '';
    try {
      return await readSdkMetrics(sdk);
    } catch {
      this.#process.collectErrors.add(['sdk']);
      return '';
    }
  }
}

export interface OpenedMetrics {
  readonly metrics: WorkerMetrics;
  readonly port: number;
}

/** Metrics of a worker process; null without an address. */
export async function openMetrics(
  address: MetricsAddress | null,
  { engine }: Pick<TemperConfig, 'engine'>,
  env: NodeJS.ProcessEnv,
): Promise<OpenedMetrics | null> {
  if (address === null) return null;
  const key = metricsKey(env, env[engine.keyVariable] ?? '');
  if (key === '')
    throw badConfig(
      `metrics are served to clients with a key only, but neither ${METRICS_KEY_VARIABLE} nor ${engine.keyVariable} is set; export ${METRICS_KEY_VARIABLE}="$(openssl rand -base64 32)", and give Prometheus the same key`,
    );
  const metrics = new WorkerMetrics({ address, key, sdk: await findPrivateAddress() });
  return { metrics, port: await metrics.serve() };
}

/** Status of a call without a complete answer: refused, cut, out of time, or aborted. */
const NO_ANSWER = 'none';

/** A connection to the engine whose calls are counted and timed, each try by itself. */
export function meteredEngine(engine: EngineConnection, agent: string, seconds: Histogram): EngineConnection {
  return {
    url: engine.url,
    keyVariable: engine.keyVariable,
    async post(body, options) {
      const startedAt = performance.now();
      let status = NO_ANSWER;
      try {
        const answer = await engine.post(body, options);
        status = String(answer.status);
        return answer;
      } finally {
        seconds.observe([agent, status], (performance.now() - startedAt) / 1000);
      }
    },
    close: () => engine.close(),
  };
}

const ANSWER_WITHIN_MS = 3000;
/** A queue for each group or evaluation of a workflow agent: as a label it would have no bound. */
const OF_MODEL_QUEUE = /\btask_queue="temper-model\//;

/** Names and units by Prometheus's conventions. */
function exportTo({ host, port }: PrivateAddress): NonNullable<TelemetryOptions['metrics']> {
  return {
    attachServiceName: false,
    prometheus: {
      bindAddress: `${host}:${port}`,
      countersTotalSuffix: true,
      unitSuffix: true,
      useSecondsForDurations: true,
    },
  };
}

/**
 * Metrics of Temporal's SDK. Its exporter is an HTTP server without a key: it listens where no web page and no other
 * machine can reach it, and this process passes its text on.
 */
async function readSdkMetrics({ host, port }: PrivateAddress): Promise<string> {
  const response = await fetch(`http://${host}:${port}/metrics`, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  const text = await readBoundedText(response);
  if (!response.ok) throw new Error(`Temporal's SDK answered ${response.status} for its metrics`);
  const bounded = text.split('\n').filter((line) => !OF_MODEL_QUEUE.test(line));
  return bounded.join('\n');
}
