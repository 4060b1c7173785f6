/** Metrics of a worker process, if its configuration or its local stack asks for them. */
import { TemperError } from '../../core/failures.ts';
import { METRICS_KEY_VARIABLE } from '../../core/wire-constants.ts';
import type { TemperConfig } from '../config/config.ts';
import { metricsKey, type MetricsAddress } from '../metrics/metrics-server.ts';
import { WorkerMetrics } from '../metrics/worker-metrics.ts';
import { findPrivateAddress } from '../process/private-address.ts';

export interface OpenedMetrics {
  readonly metrics: WorkerMetrics;
  readonly port: number;
}

/** Null without an address. */
export async function openMetrics(
  address: MetricsAddress | null,
  { engine }: Pick<TemperConfig, 'engine'>,
  env: NodeJS.ProcessEnv,
): Promise<OpenedMetrics | null> {
  if (address === null) return null;
  const key = metricsKey(env, env[engine.keyVariable] ?? '');
  if (key === '')
    throw new TemperError(
      'BadConfig',
      `metrics are served to clients with a key only, but neither ${METRICS_KEY_VARIABLE} nor ${engine.keyVariable} is set; export ${METRICS_KEY_VARIABLE}="$(openssl rand -base64 32)", and give Prometheus the same key`,
    );
  const metrics = new WorkerMetrics({ address, key, sdk: await findPrivateAddress() });
  return { metrics, port: await metrics.serve() };
}
