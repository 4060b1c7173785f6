/** The metrics of all processes of a local stack at one address, each with the name of its process. */
import { isIPv6 } from 'node:net';
import { readBoundedText } from '../../../core/read-bounded.ts';
import type { ChildStatus } from '../../events.ts';
import { joinTexts, writeFamilies, type Family, type Part } from '../../metrics/exposition.ts';
import { metricsKey, serveMetrics } from '../../metrics/metrics-server.ts';
import type { KeyedServer } from '../../../play/transports/keyed-server.ts';
import type { WorkerTold } from '../../worker/worker-settings.ts';
import type { ChildContext } from '../children/children.ts';

export interface MetricsSource {
  readonly status: ChildStatus;
  /** Null: this process serves no metrics, or is not ready. */
  readonly url: string | null;
}

/** A scrape ends after ten seconds by default, and a worker needs a part of it for the store and the Temporal server. */
const ANSWER_WITHIN_MS = 8000;

/** Null if nobody asked for metrics. Fails if the address is taken. */
export async function serveStackMetrics(
  { spec: { metrics }, engineKey }: Pick<ChildContext, 'spec' | 'engineKey'>,
  sources: () => MetricsSource[],
): Promise<KeyedServer | null> {
  if (metrics === null) return null;
  const key = metricsKey(process.env, engineKey);
  return serveMetrics(metrics, key, () => collect(sources(), key));
}

/** Where a worker's metrics are, by what it told when it became ready: a port that it no longer has may be a stranger's. */
export function metricsUrlOf(told: string | null): string | null {
  const { metricsPort = null } = JSON.parse(told || '{}') as Partial<WorkerTold>;
  return metricsPort === null ? null : `http://127.0.0.1:${metricsPort}/metrics`;
}

export function urlHost(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}

async function collect(sources: readonly MetricsSource[], key: string): Promise<string> {
  const parts = await Promise.all(sources.map((source) => scrape(source, key)));
  return joinTexts([{ text: writeFamilies(ofProcesses(sources)), labels: {} }, ...parts]);
}

/** A process that does not answer has no samples: it is restarting, or `temper_process_up` says that it is down. */
async function scrape({ status, url }: MetricsSource, key: string): Promise<Part> {
  const labels = { process: status.name };
  if (url === null) return { labels, text: '' };
  try {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    const text = await readBoundedText(response);
    return { labels, text: response.ok ? text : '' };
  } catch {
    return { labels, text: '' };
  }
}

function ofProcesses(sources: readonly MetricsSource[]): Family[] {
  const each = (value: (status: ChildStatus) => number) =>
    sources.map(({ status }) => ({ labels: { process: status.name }, value: value(status) }));
  return [
    {
      name: 'temper_process_up',
      type: 'gauge',
      help: 'Processes of the local stack: 1 if it runs and is ready.',
      samples: each(({ state }) => (state === 'ready' ? 1 : 0)),
    },
    {
      name: 'temper_process_restarts_total',
      type: 'counter',
      help: 'Unexpected ends of processes of the local stack, each followed by a start.',
      samples: each(({ deaths }) => deaths),
    },
  ];
}
