/** Reads the counters of a running GPU worker from time to time; what they were at a moment lies between two readings. */
/** One answer of `GET /health`; all engines of the worker added up. */
interface Reading {
  readonly atMs: number;
  readonly forwardS: number;
  readonly deviceWaitS: number;
  readonly requests: number;
}

export type EngineWork = Omit<Reading, 'atMs'>;

interface Health {
  engines: Record<string, { counters: { forward_s: number; device_wait_s: number; requests: number } }>;
}

/** An answer takes well under a millisecond of the worker, so this stays out of what it measures. */
const EVERY_MS = 250;

export class EngineMeter {
  readonly #readings: Reading[] = [];
  readonly #port: () => number | undefined;
  readonly #timer: NodeJS.Timeout;

  /** `port`: of the engine; undefined until it is known. */
  constructor(port: () => number | undefined) {
    this.#port = port;
    this.#timer = setInterval(() => void this.#read(), EVERY_MS);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Work of the engine between two moments. */
  between(fromMs: number, toMs: number): EngineWork {
    const [from, to] = [this.#at(fromMs), this.#at(toMs)];
    return {
      forwardS: to.forwardS - from.forwardS,
      deviceWaitS: to.deviceWaitS - from.deviceWaitS,
      requests: to.requests - from.requests,
    };
  }

  #at(atMs: number): Reading {
    const after = this.#readings.findIndex((reading) => reading.atMs >= atMs);
    const right = this.#readings.at(after);
    const left = this.#readings[after - 1] ?? right;
    if (left === undefined || right === undefined) throw new Error('the GPU worker never answered GET /health');
    const share = left === right || after < 0 ? 1 : (atMs - left.atMs) / (right.atMs - left.atMs);
    const mix = (a: number, b: number): number => a + (b - a) * share;
    return {
      atMs,
      forwardS: mix(left.forwardS, right.forwardS),
      deviceWaitS: mix(left.deviceWaitS, right.deviceWaitS),
      requests: mix(left.requests, right.requests),
    };
  }

  async #read(): Promise<void> {
    const port = this.#port();
    if (port === undefined) return;
    try {
      const { engines } = (await (await fetch(`http://127.0.0.1:${port}/health`)).json()) as Health;
      const counters = Object.values(engines).map((engine) => engine.counters);
      const sum = (name: keyof (typeof counters)[number]): number => counters.reduce((all, one) => all + one[name], 0);
      const work = { forwardS: sum('forward_s'), deviceWaitS: sum('device_wait_s'), requests: sum('requests') };
      this.#readings.push({ atMs: Date.now(), ...work });
    } catch {
      // Not started yet, or ended already.
    }
  }
}
