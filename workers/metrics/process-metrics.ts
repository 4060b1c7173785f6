/** Metrics of one process: its calls to the engine and its store operations, each execution counted, and its own health. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { version } from '../version.ts';
import type { Family } from './exposition.ts';
import { Counter, Histogram } from './instruments.ts';

/** From a token to a long answer. */
const CALL_BOUNDS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const STORE_BOUNDS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

const NANOSECONDS = 1e9;
const MICROSECONDS = 1e6;

export class ProcessMetrics {
  readonly engineCallSeconds = new Histogram(
    {
      name: 'temper_engine_call_seconds',
      help: 'Time of engine calls by HTTP status, retries included; none: no answer.',
      labels: ['agent', 'status'],
    },
    CALL_BOUNDS_S,
  );

  readonly storeSeconds = new Histogram(
    {
      name: 'temper_store_operation_seconds',
      help: 'Time of store operations, failed ones included.',
      labels: ['operation'],
    },
    STORE_BOUNDS_S,
  );

  readonly storeErrors = new Counter({
    name: 'temper_store_errors_total',
    help: 'Store operations that failed.',
    labels: ['operation'],
  });

  readonly storeBytes = new Counter({
    name: 'temper_store_bytes_total',
    help: 'Bytes read from the store and written to it.',
    labels: ['direction'],
  });

  readonly collectErrors = new Counter({
    name: 'temper_metrics_errors_total',
    help: 'Parts of scrapes that the store or Temporal did not answer.',
    labels: ['source'],
  });

  readonly #delay = monitorEventLoopDelay();
  readonly #version = version();

  constructor() {
    this.#delay.enable();
  }

  families(): Family[] {
    return [
      this.engineCallSeconds.family(),
      this.storeSeconds.family(),
      this.storeErrors.family(),
      this.storeBytes.family(),
      this.collectErrors.family(),
      ...this.#ofProcess(),
    ];
  }

  close(): void {
    this.#delay.disable();
  }

  /** Names of Prometheus's own client for Node. */
  #ofProcess(): Family[] {
    const { user, system } = process.cpuUsage();
    const delayS = this.#delay.percentile(99) / NANOSECONDS;
    this.#delay.reset();
    const startedAtS = Date.now() / 1000 - process.uptime();
    return [
      one('process_cpu_seconds_total', 'counter', 'Processor time.', (user + system) / MICROSECONDS),
      one('process_resident_memory_bytes', 'gauge', 'Memory in use.', process.memoryUsage.rss()),
      one('process_start_time_seconds', 'gauge', 'Unix time of its start.', Math.round(startedAtS)),
      one('nodejs_eventloop_lag_p99_seconds', 'gauge', 'Delay of the event loop since the last scrape.', delayS),
      {
        ...one('temper_build_info', 'gauge', 'Version of Temper; always 1.', 1),
        samples: [{ labels: { version: this.#version }, value: 1 }],
      },
    ];
  }
}

function one(name: string, type: Family['type'], help: string, value: number): Family {
  return { name, type, help, samples: [{ labels: {}, value }] };
}
