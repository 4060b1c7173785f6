/** Folders of this process for what its programs are told, which only this user can read, and the leash of all of them. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ProgramLeash } from './program-leash.ts';

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
