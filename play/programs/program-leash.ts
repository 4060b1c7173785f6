/**
 * Ends the programs of this process with it, however it ends: a shell of a few lines that waits for the end of its own
 * input, in a session of its own. There is one for each process that plays programs.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** In the environment of every process that a program starts: who leaves its group is found by it (Linux). */
export const MARK_VARIABLE = 'TEMPER_PROGRAM_MARK';
/** Prefix of the marks of this process's programs. */
export const PROCESS_MARK = randomUUID();

/** `+ GROUP` and `- GROUP` are its input; $1 is the mark, $2 a folder to be removed. */
const SCRIPT = [
  "trap '' HUP INT TERM QUIT",
  "groups=' '",
  'while read -r sign group; do',
  '  case $sign in',
  '    +) groups="$groups$group " ;;',
  '    -) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;',
  '  esac',
  'done',
  'for group in $groups; do kill -KILL "-$group" 2>/dev/null; done',
  'for round in 1 2 3; do',
  `  for file in $(grep -lsF "${MARK_VARIABLE}=$1" /proc/[0-9]*/environ 2>/dev/null); do`,
  '    pid=${file#/proc/}',
  '    pid=${pid%/environ}',
  // One that leads a group of which nothing was written any more.
  '    kill -KILL "-$pid" 2>/dev/null',
  '    kill -KILL "$pid" 2>/dev/null',
  '  done',
  'done',
  'rm -rf -- "$2"',
].join('\n');

export class ProgramLeash {
  readonly #folder: string;
  readonly #groups = new Set<number>();
  #shell: ChildProcess | null = null;

  /** `folder`: with what is written to programs; gone with this process. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Before a program starts: from then on, only telling its group is between its start and its being held. */
  hold(): void {
    if (this.#shell === null) this.#start();
  }

  add(group: number): void {
    this.#groups.add(group);
    this.#write(`+ ${group}`);
  }

  remove(group: number): void {
    this.#groups.delete(group);
    this.#write(`- ${group}`);
  }

  #start(): void {
    const shell = spawn('/bin/sh', ['-c', SCRIPT, 'temper-leash', PROCESS_MARK, this.#folder], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
    });
    this.#shell = shell;
    const forget = (): void => void (this.#shell = this.#shell === shell ? null : this.#shell);
    shell.on('error', forget).on('exit', forget);
    shell.stdin?.on('error', forget);
    // Neither it nor its input keeps this process from ending.
    shell.unref();
    (shell.stdin as unknown as { unref?: () => void } | null)?.unref?.();
    for (const group of this.#groups) this.#write(`+ ${group}`);
  }

  #write(line: string): void {
    this.#shell?.stdin?.write(`${line}\n`);
  }
}

let shared: { folder: string; leash: ProgramLeash; opened: number } | null = null;

function open(): { folder: string; leash: ProgramLeash; opened: number } {
  if (shared === null) {
    const folder = mkdtempSync(join(tmpdir(), 'temper-programs-'));
    shared = { folder, leash: new ProgramLeash(folder), opened: 0 };
  }
  return shared;
}

/** The leash of this process's programs. */
export function processLeash(): ProgramLeash {
  return open().leash;
}

/** A folder for one program, which its caller makes and removes. */
export function openFolder(): { folder: string; leash: ProgramLeash } {
  const own = open();
  own.opened += 1;
  return { folder: join(own.folder, String(own.opened)), leash: own.leash };
}
