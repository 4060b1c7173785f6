/** Settings of a worker process: store and engine, from the local stack or from configuration. */
import { badConfig } from '../../core/contract/failures.ts';
import { checkBaseUrl } from '../../play/connections/providers.ts';
import type { Store } from '../../store/store.ts';
import type { TemperConfig } from '../config/config.ts';
import type { WorkerMetrics } from '../metrics/worker-metrics.ts';
import type { MetricsAddress } from '../metrics/metrics-server.ts';

export interface WorkerSettings {
  readonly store: Store;
  readonly engine: { readonly url: string; readonly key: string };
  /** Null, or absent in tests: nobody asks for metrics. */
  readonly metrics?: WorkerMetrics | null;
}

export function engineSettings({ engine }: TemperConfig, env: NodeJS.ProcessEnv): WorkerSettings['engine'] {
  const { url } = engine;
  if (!url) {
    throw badConfig(
      'a worker needs an engine, but none is configured; set engine.url in temporal.config.ts or TEMPER_ENGINE_URL, or let temper dev start one',
    );
  }
  checkBaseUrl('engine.url of temporal.config.ts, or TEMPER_ENGINE_URL,', url);
  const key = env[engine.keyVariable];
  if (key) return { url, key };
  throw badConfig(`the engine ${url} needs a key in ${engine.keyVariable}, which is not set; export it`);
}

/** Options from the local stack to the worker process; imported by both without either's packages. */
export interface WorkerProcessOptions {
  readonly project: string;
  readonly agents: readonly string[];
  /** End when stdin closes, so that nothing outlives the stack that started it. */
  readonly leash: boolean;
  /** Null: it serves no metrics. */
  readonly metrics: MetricsAddress | null;
}
