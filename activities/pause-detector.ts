import { KEPT_PAUSES, PAUSE_CHECK_MS } from '../core/contract/wire-constants.ts';

/**
 * Detects pauses of this process (SIGSTOP, a suspended laptop, a blocked event loop). Temporal gives the work of such a
 * process to another one; continuing it would do it twice.
 */
export interface PauseDetector {
  /**
   * The longest pause that ended after `since`, the present one included. Measured by the wall clock, which runs while a
   * host is suspended. A clock that was ahead and is corrected has recorded pauses that end in the future: they don't count.
   */
  longestPauseMs(since: number): number;
}

export function startPauseDetector(clock: () => number = Date.now): PauseDetector & { check(): void } {
  let last = clock();
  const pauses: { endedAt: number; lengthMs: number }[] = [];
  const check = (): void => {
    const now = clock();
    if (now - last > 2 * PAUSE_CHECK_MS) pauses.push({ endedAt: now, lengthMs: now - last });
    if (pauses.length > KEPT_PAUSES) pauses.shift();
    last = now;
  };
  setInterval(check, PAUSE_CHECK_MS).unref();
  return {
    check,
    longestPauseMs(since) {
      const now = clock();
      const ended = pauses.filter(({ endedAt }) => endedAt > since && endedAt <= now).map(({ lengthMs }) => lengthMs);
      return Math.max(now - last, ...ended);
    },
  };
}
