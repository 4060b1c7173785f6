/** `GET /metrics` for Prometheus, behind a key. */
import { METRICS_KEY_VARIABLE } from '../../core/contract/wire-constants.ts';
import { HttpRefusal, refusalOf, writeRefusal } from '../../play/transports/http-server.ts';
import { checkMethod, openKeyedServer, pathOf, type KeyedServer } from '../../play/transports/keyed-server.ts';
import { PROMETHEUS } from './exposition.ts';
import type { TemperConfig } from '../config/config.ts';

export interface MetricsAddress {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
}

const PATH = '/metrics';
/** Prometheus keeps one connection for each of its servers. */
const MAX_CONNECTIONS = 64;

/** A key that opens nothing but metrics, or else the engine's. */
export function metricsKey(env: NodeJS.ProcessEnv, engineKey: string): string {
  return env[METRICS_KEY_VARIABLE] || engineKey;
}

/** `collect` is called for each scrape, and once for those at the same time. */
export function serveMetrics(
  address: MetricsAddress,
  key: string,
  collect: () => Promise<string>,
): Promise<KeyedServer> {
  const shared = shareCalls(collect);
  const options = {
    ...address,
    command: 'the metrics server',
    hosts: [],
    key,
    limits: { maxConnections: MAX_CONNECTIONS },
    remedy: 'set another metrics.port or metrics.host in temporal.config.ts, or pass another --metrics-port',
  };
  return openKeyedServer(options, {
    /** The name in `Host` is free: Prometheus may find this machine by any, and no web page can send the key. */
    async answer(request, response, access) {
      const path = pathOf(request);
      if (path !== PATH) throw new HttpRefusal(404, `the only path is ${PATH}`, 'not_found');
      access.checkKey(request);
      checkMethod(path, request.method ?? 'GET', ['GET', 'HEAD']);
      const text = await shared();
      response.writeHead(200, { 'content-type': PROMETHEUS }).end(text);
    },
    refuse: (error, _, response) => writeRefusal(refusalOf(error, options.command), response),
  });
}

export function shareCalls(collect: () => Promise<string>): () => Promise<string> {
  let collecting: Promise<string> | null = null;
  return () => {
    collecting ??= collect().finally(() => (collecting = null));
    return collecting;
  };
}

/** `wanted`: a port in place of the configured one. */
export function configuredMetrics(
  { metrics }: Pick<TemperConfig, 'metrics'>,
  wanted: number | null = null,
): MetricsAddress | null {
  const port = wanted ?? metrics.port;
  return port === null ? null : { host: metrics.host, port };
}
