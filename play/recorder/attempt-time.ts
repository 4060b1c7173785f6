/** The time that an attempt has for its calls. What an outage takes is given back. */
import type { RolloutConfig } from '../../core/contract/contract.ts';
import { TemperError } from '../../core/contract/failures.ts';
import { OutageClock, SYSTEM_CLOCK, type Clock } from '../connections/clock.ts';
import type { SendLimits } from '../connections/retry-call.ts';
import type { Ending } from './ending.ts';

export interface TimeOptions {
  rollout: Pick<RolloutConfig, 'attemptTimeoutMs'>;
  /** False where this process may have lost its attempts to another one. */
  isFresh: () => boolean;
  /** Default: the system's clock. */
  clock?: Clock;
}

export class AttemptTime {
  readonly outage: OutageClock;
  readonly #options: TimeOptions;
  readonly #ending: Ending;
  readonly #clock: Clock;
  readonly #beganAt: number;
  /** Calls that are out. */
  readonly #sending = new Set<Promise<unknown>>();

  constructor(options: TimeOptions, ending: Ending) {
    this.#options = options;
    this.#ending = ending;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#beganAt = this.#clock.now();
    this.outage = new OutageClock(this.#clock);
  }

  get leftMs(): number {
    return this.#beganAt + this.#options.rollout.attemptTimeoutMs + this.outage.elapsedMs - this.#clock.now();
  }

  /** Ends an attempt that has used up its time; not in the middle of a call, which has a deadline of its own. */
  endIfLate(): void {
    if (this.leftMs > 0 || this.#sending.size > 0) return;
    const { attemptTimeoutMs } = this.#options.rollout;
    this.#ending.failAs(`an attempt may take attemptTimeoutMs ${attemptTimeoutMs} ms, it took longer`);
  }

  /**
   * Sends a call of the attempt, to the engine or elsewhere. Past the attempt's time none goes out; those that are out are
   * waited for, since an outage gives time back.
   */
  async send<T>(signal: AbortSignal | null, ask: (limits: SendLimits) => Promise<T>): Promise<T> {
    while (this.leftMs <= 0 && this.#sending.size > 0) await Promise.race(this.#sending).catch(() => undefined);
    this.endIfLate();
    this.#ending.check();
    const signals = signal === null ? [this.#ending.signal] : [this.#ending.signal, signal];
    const sending = ask({ signals, checkFresh: () => this.checkFresh(), outage: this.outage, clock: this.#clock });
    this.#sending.add(sending);
    return sending.finally(() => this.#sending.delete(sending));
  }

  checkFresh(): void {
    if (this.#options.isFresh()) return;
    const message =
      'this process was suspended, or cut off from Temporal, for longer than its heartbeat timeout; the attempt is retried';
    const stale = new TemperError('StaleAttempt', message);
    this.#ending.abort(stale);
    throw stale;
  }
}
