/**
 * Metrics of Temporal's SDK. Its exporter is an HTTP server without a key: it listens where no web page and no other
 * machine can reach it, and this process passes its text on.
 */
import type { TelemetryOptions } from '@temporalio/worker';
import { readBoundedText } from '../../core/read-bounded.ts';
import type { PrivateAddress } from '../process/private-address.ts';

const ANSWER_WITHIN_MS = 3000;
/** A queue for each group or evaluation of a workflow agent: as a label it would have no bound. */
const OF_MODEL_QUEUE = /\btask_queue="temper-model\//;

/** Names and units by Prometheus's conventions. */
export function exportTo({ host, port }: PrivateAddress): NonNullable<TelemetryOptions['metrics']> {
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

export async function readSdkMetrics({ host, port }: PrivateAddress): Promise<string> {
  const response = await fetch(`http://${host}:${port}/metrics`, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  const text = await readBoundedText(response);
  if (!response.ok) throw new Error(`Temporal's SDK answered ${response.status} for its metrics`);
  return text;
}

export function isUnbounded(line: string): boolean {
  return OF_MODEL_QUEUE.test(line);
}
