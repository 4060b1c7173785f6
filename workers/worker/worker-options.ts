/** Options from the local stack to the worker process; imported by both without either's packages. */
import type { MetricsAddress } from '../metrics/metrics-server.ts';

export interface WorkerProcessOptions {
  readonly project: string;
  readonly agents: readonly string[];
  /** End when stdin closes, so that nothing outlives the stack that started it. */
  readonly leash: boolean;
  /** Null: it serves no metrics. */
  readonly metrics: MetricsAddress | null;
}

/** The log message that says: this worker polls. */
export const WORKER_READY = 'worker ready';
