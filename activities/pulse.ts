import { KEPT_STANDSTILLS, PULSE_MS } from '../core/wire-constants.ts';

/**
 * Whether this process stood still (SIGSTOP, a suspended laptop, a blocked event loop). Temporal gives the work of such
 * a process to another one; what it does when it goes on would be done twice.
 */
export interface Pulse {
  /**
   * The longest standstill that ended after `since`, the present one included. By the wall clock, which goes on while a
   * host is suspended. One that was ahead and is put right has seen standstills that have not ended yet: they are none.
   */
  longestGapMs(since: number): number;
}

export function startPulse(clock: () => number = Date.now): Pulse & { beat(): void } {
  let last = clock();
  const gaps: { endedAt: number; lengthMs: number }[] = [];
  const beat = (): void => {
    const now = clock();
    if (now - last > 2 * PULSE_MS) gaps.push({ endedAt: now, lengthMs: now - last });
    if (gaps.length > KEPT_STANDSTILLS) gaps.shift();
    last = now;
  };
  setInterval(beat, PULSE_MS).unref();
  return {
    beat,
    longestGapMs(since) {
      const now = clock();
      const ended = gaps.filter(({ endedAt }) => endedAt > since && endedAt <= now).map(({ lengthMs }) => lengthMs);
      return Math.max(now - last, ...ended);
    },
  };
}
