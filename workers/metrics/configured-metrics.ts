/** Address of `/metrics` by configuration and flag; imported without the packages of a worker. */
import type { TemperConfig } from '../config/config.ts';
import type { MetricsAddress } from './metrics-server.ts';

/** `wanted`: a port in place of the configured one. */
export function configuredMetrics(
  { metrics }: Pick<TemperConfig, 'metrics'>,
  wanted: number | null = null,
): MetricsAddress | null {
  const port = wanted ?? metrics.port;
  return port === null ? null : { host: metrics.host, port };
}
