import { setTimeout as sleep } from 'node:timers/promises';

/** The time that waits and deadlines of calls are measured by. Tests pass their own, in which waiting takes no time. */
export interface Clock {
  /** Milliseconds since 1970, by a clock that nobody sets while the process lives. */
  now(): number;
  /** Rejects once the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
};

export const ENGINE = 'the engine';

/** How long, in all, an attempt stood still because its engine did not answer; that time is not the agent's. */
export class OutageClock {
  /** Why calls wait now; null where none does. */
  reason: string | null = null;
  /** The thing that does not answer, for messages. */
  awaited = ENGINE;
  /** When the engine is asked again, by the clock; 0 while it is being asked. */
  nextTryAt = 0;
  #waiting = 0;
  #since = 0;
  #endedAt = 0;
  #totalMs = 0;
  readonly #clock: Clock;

  constructor(clock: Clock = SYSTEM_CLOCK) {
    this.#clock = clock;
  }

  /** `since` is when the first try that came to nothing began. */
  began(reason: string, since: number, awaited = ENGINE): void {
    if (this.#waiting === 0) this.#since = Math.max(since, this.#endedAt);
    this.#waiting += 1;
    this.reason = reason;
    this.awaited = awaited;
  }

  /** Still waiting: the newest reason counts, and whoever asked to be left alone is. */
  goesOn(reason: string, nextTryAt: number): void {
    this.reason = reason;
    this.nextTryAt = nextTryAt;
  }

  /** Since when calls wait without a break; null where none does. */
  get waitingSince(): number | null {
    return this.#waiting > 0 ? this.#since : null;
  }

  ended(): void {
    this.#waiting -= 1;
    if (this.#waiting > 0) return;
    this.#endedAt = this.#clock.now();
    this.#totalMs += this.#endedAt - this.#since;
    this.reason = null;
  }

  get elapsedMs(): number {
    return this.#totalMs + (this.#waiting > 0 ? this.#clock.now() - this.#since : 0);
  }
}
