/** How far a gathering is, in one line of a terminal. */
export interface GatherProgress {
  done: number;
  total: number;
  exceptions: number;
  /** Null until an attempt has one. */
  reward: number | null;
  metrics: Record<string, number>;
}

const EVERY_MS = 100;
const MAX_METRICS = 4;

/** Rewritten in place on a terminal; anywhere else nothing is printed. */
export function openProgressLine(description: string | null): (progress: GatherProgress, isLast: boolean) => void {
  if (description === null || !process.stderr.isTTY) return () => undefined;
  let toldAt = -Infinity;
  return (progress, isLast) => {
    if (!isLast && performance.now() - toldAt < EVERY_MS) return;
    toldAt = performance.now();
    process.stderr.write(`\r\u001B[K${describeProgress(description, progress)}${isLast ? '\n' : ''}`);
  };
}

function describeProgress(description: string, { done, total, exceptions, reward, metrics }: GatherProgress): string {
  const shown = Object.entries(metrics).slice(0, MAX_METRICS);
  return [
    `${description} ${done}/${total}`,
    ...(reward === null ? [] : [`reward ${reward.toFixed(3)}`]),
    ...shown.map(([name, value]) => `${name} ${value.toFixed(3)}`),
    ...(exceptions === 0 ? [] : [`exceptions ${exceptions}`]),
  ].join(' · ');
}
