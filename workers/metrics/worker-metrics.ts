/** Metrics of a TypeScript worker at one address: its own, its runs', and those of Temporal's SDK. */
import type { Client } from '@temporalio/client';
import type { ActivityInterceptorsFactory, TelemetryOptions, WorkerOptions } from '@temporalio/worker';
import { runOfWorkflowId } from '../../core/queues.ts';
import type { EngineConnection } from '../../play/connections/engine-connection.ts';
import type { KeyedServer } from '../../play/transports/keyed-server.ts';
import type { Store } from '../../store/store.ts';
import type { PrivateAddress } from '../process/private-address.ts';
import { joinTexts, writeFamilies } from './exposition.ts';
import { meteredEngine } from './metered-engine.ts';
import { meteredStore } from './metered-store.ts';
import { serveMetrics, type MetricsAddress } from './metrics-server.ts';
import { ProcessMetrics } from './process-metrics.ts';
import { runFamilies } from './run-families.ts';
import { exportTo, isUnbounded, readSdkMetrics } from './sdk-metrics.ts';
import { WatchedRuns } from './watched-runs.ts';

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
    const own = writeFamilies([...runFamilies(runs), ...this.#process.families()]);
    return joinTexts(
      [own, sdk].map((text) => ({ text, labels: {} })),
      isUnbounded,
    );
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
