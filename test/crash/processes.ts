/** The processes of this machine, as Linux tells of them. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Processes in this folder whose command line has that word. */
export function processesIn(folder: string, word: string): number[] {
  const isOne = (pid: number): boolean =>
    read(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).includes(word) &&
    read(() => readlinkSync(`/proc/${pid}/cwd`)) === folder;
  return allProcesses().filter(isOne);
}

/** Processes that a GPU worker starts: vLLM's guard, its server, its engine and whatever these start, or its ranks. */
export class WorkersProcesses {
  readonly #seen = new Set<number>();
  #chosen = 0;

  /** Another one of them each time; null where there is none. */
  next(worker: number | null): number | null {
    const pids = worker === null ? [] : descendantsOf(worker);
    for (const pid of pids) this.#seen.add(pid);
    return pids[this.#chosen++ % pids.length] ?? null;
  }

  /** Whether one that was ever seen is still there. */
  areLeft(): boolean {
    return [...this.#seen].some((pid) => parentOf(pid) !== null);
  }
}

function descendantsOf(ancestor: number): number[] {
  const found = new Set([ancestor]);
  const all = allProcesses().map((pid) => ({ pid, parent: parentOf(pid) ?? 0 }));
  for (let before = 0; before !== found.size;) {
    before = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return [...found].filter((pid) => pid !== ancestor);
}

/** Null for one that is gone, and for one that only waits for its parent to notice. */
function parentOf(pid: number): number | null {
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
