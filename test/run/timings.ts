/** How long the jobs of the suite take, and how much processor time. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Step } from './command.ts';

export interface Timing {
  readonly title: string;
  readonly seconds: number;
  /** Sum over all its processes; null if it is not known. */
  readonly processorSeconds: number | null;
}

const COUNTER = fileURLToPath(new URL('./processor_time.py', import.meta.url));

/** The same step, which writes its processor time into a file. */
export function withProcessorTime(step: Step, python: string, file: string): Step {
  return { ...step, shown: step.command, command: [python, '-S', '-E', COUNTER, file, ...step.command] };
}

export function readProcessorTime(file: string): number | null {
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : null;
}

/** A line for each job, the one with the most processor time first, and one for all. */
export function describeTimings(timings: readonly Timing[]): string[] {
  const known = timings.filter(({ processorSeconds }) => processorSeconds !== null);
  const sum = known.reduce((total, { processorSeconds }) => total + processorSeconds!, 0);
  const sorted = timings.toSorted((a, b) => (b.processorSeconds ?? 0) - (a.processorSeconds ?? 0));
  return [
    'processor time, minutes of the clock, job',
    ...sorted.map(({ title, seconds, processorSeconds }) => {
      const used = processorSeconds === null ? '–' : processorSeconds.toFixed(0);
      return `${used.padStart(7)} s  ${(seconds / 60).toFixed(1).padStart(6)} min  ${title}`;
    }),
    `${sum.toFixed(0).padStart(7)} s in all`,
  ];
}
