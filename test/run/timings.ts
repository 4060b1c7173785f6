/** How long the jobs of the suite take, how much processor time, and which files are slow. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Step } from './command.ts';
import type { FileTime } from './reports.ts';

export interface Timing {
  readonly title: string;
  readonly seconds: number;
  /** Sum over all its processes; null if it is not known. */
  readonly processorSeconds: number | null;
}

const RUN_JOB = fileURLToPath(new URL('./run_job.py', import.meta.url));
const SLOWEST = 30;
/** Linux counts processor time for /proc in hundredths of a second. */
const TICKS_A_SECOND = 100;

/** The same step, which writes its processor time into a file, and whose processes end with it. */
export function withProcessorTime<S extends Step>(step: S, python: string, file: string): S {
  return { ...step, shown: step.command, command: [python, '-S', '-E', RUN_JOB, file, ...step.command] };
}

export function readProcessorTime(file: string): number | null {
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : null;
}

/** Of this process and all that it waited for; null where the system does not tell. */
export function spentSeconds(stat = '/proc/self/stat'): number | null {
  if (!existsSync(stat)) return null;
  // The name of the program, in brackets, may hold spaces; the times of user and system, own and children's, are 14 to 17.
  const fields = readFileSync(stat, 'utf8').split(') ')[1]!.split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_A_SECOND;
}

/** A line for each job, the one with the most processor time first, one for what belongs to no job, and one for all. */
export function describeTimings(timings: readonly Timing[], spent = spentSeconds(), minutes?: number): string[] {
  const sum = timings.reduce((total, { processorSeconds }) => total + (processorSeconds ?? 0), 0);
  const sorted = timings.toSorted((a, b) => (b.processorSeconds ?? 0) - (a.processorSeconds ?? 0));
  return [
    'processor time, minutes of the clock, job',
    ...sorted.map(({ title, seconds, processorSeconds }) => line(processorSeconds, seconds / 60, title)),
    ...(spent === null ? [] : [line(spent - sum, null, 'tools, installed or looked for, and the suite itself')]),
    line(spent ?? sum, minutes ?? null, 'in all'),
  ];
}

function line(processorSeconds: number | null, minutes: number | null, title: string): string {
  const [used, taken] = [processorSeconds?.toFixed(0) ?? '–', minutes === null ? '' : `${minutes.toFixed(1)} min`];
  return `${used.padStart(7)} s  ${taken.padStart(10)}  ${title}`;
}

export function describeFiles(files: readonly FileTime[]): string[] {
  const sorted = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  return [
    'seconds of the clock, slowest files',
    ...sorted.map((of) => `${of.seconds.toFixed(1).padStart(7)}  ${of.file}`),
  ];
}
