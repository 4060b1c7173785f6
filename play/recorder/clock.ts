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
