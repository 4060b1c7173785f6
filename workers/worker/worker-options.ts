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

/** One line of JSON from the worker process to the local stack, once it polls. */
export interface WorkerTold {
  /** Null: it serves no metrics. */
  readonly metricsPort: number | null;
}
