/** The largest resident memory of a process within each phase of a measurement, as Linux itself notes it. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const KIB_IN_MIB = 1024;
/** To this file of a process: its peak begins anew. */
const RESET_PEAK = '5';

export class PeakMemory {
  /** MiB by phase. */
  readonly phases: Record<string, number> = {};
  readonly #pid: number;

  constructor({ pid }: Pick<ChildProcess, 'pid'>) {
    if (pid === undefined) throw new Error('the process has not started');
    this.#pid = pid;
  }

  endPhase(name: string): void {
    const status = readFileSync(`/proc/${this.#pid}/status`, 'utf8');
    this.phases[name] = Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / KIB_IN_MIB);
    writeFileSync(`/proc/${this.#pid}/clear_refs`, RESET_PEAK);
  }
}
