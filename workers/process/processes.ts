/** Processes that an earlier stack may have left: recognised by pid *and* start time, so that a stranger is never touched. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ProcessMark {
  readonly name: string;
  readonly pid: number;
  readonly startTime: string;
}

const END_WITHIN_MS = 5000;

/** Null if there is no such process (or it is dead but not collected yet). */
export function processStartTime(pid: number): string | null {
  try {
    return process.platform === 'linux' ? linuxStartTime(pid) : otherStartTime(pid);
  } catch {
    return null;
  }
}

function linuxStartTime(pid: number): string | null {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is the program's name in brackets and may hold anything; the state follows it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z' || fields[0] === 'X') return null;
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19]}`;
}

function otherStartTime(pid: number): string | null {
  const text = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return text.trim() || null;
}

export function markProcess(name: string, pid: number): ProcessMark | null {
  const startTime = processStartTime(pid);
  return startTime === null ? null : { name, pid, startTime };
}

export function isAlive(mark: ProcessMark): boolean {
  return processStartTime(mark.pid) === mark.startTime;
}

/** Ends what a stack that was itself killed has left; returns the names of what was found. */
export async function reapLeftovers(marks: readonly ProcessMark[]): Promise<string[]> {
  const left = marks.filter(isAlive);
  for (const mark of left) endProcess(mark.pid);
  for (const until = performance.now() + END_WITHIN_MS; left.some(isAlive) && performance.now() < until;)
    await sleep(50);
  return left.map((mark) => mark.name);
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
