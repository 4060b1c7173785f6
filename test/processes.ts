/** The processes of this machine, as Linux tells of them. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Command lines of all processes that are alive. */
export function commandLines(): string[] {
  return allProcesses().map(commandLine);
}

/** Its words, with a blank after each; empty where it has ended. */
export function commandLine(pid: number): string {
  return read(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ');
}

/** Those in this folder whose command line has that word. */
export function processesIn(folder: string, word: string): number[] {
  return processesLike((line) => line.includes(word)).filter(
    (pid) => read(() => readlinkSync(`/proc/${pid}/cwd`)) === folder,
  );
}

export function processesLike(isOne: (line: string) => boolean): number[] {
  return allProcesses().filter((pid) => isOne(commandLine(pid)));
}

/** Of a process that this one may signal; root may signal all. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export function descendantsOf(ancestor: number): number[] {
  const found = new Set([ancestor]);
  const all = allProcesses().map((pid) => ({ pid, parent: parentOf(pid) ?? 0 }));
  for (let before = 0; before !== found.size;) {
    before = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return [...found].filter((pid) => pid !== ancestor);
}

/** Null for one that is gone, and for one that only waits for its parent to notice. */
export function parentOf(pid: number): number | null {
  const stat = read(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  // The name before it may contain anything.
  const [state = 'X', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return stat === '' || /[ZX]/.test(state) ? null : Number(parent);
}

function allProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Empty where the process has ended, or is another user's. */
function read(from: () => string): string {
  try {
    return from();
  } catch {
    return '';
  }
}
