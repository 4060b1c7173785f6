/** Seconds of workflow time between laps; on replay they are those of the first time. For display only. */
export function createClock(): { lap(name: string): void; seconds(): Record<string, number> } {
  const startedAtMs = Date.now();
  const laps: Record<string, number> = {};
  let lapAtMs = startedAtMs;
  return {
    lap(name) {
      laps[name] = (Date.now() - lapAtMs) / 1000;
      lapAtMs = Date.now();
    },
    seconds: () => ({ ...laps, step: (Date.now() - startedAtMs) / 1000 }),
  };
}
