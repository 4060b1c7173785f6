/** A PATH of stand-in programs: scripts in a folder, and nothing of the machine's own but what ties processes together. */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../temporary-folder.ts';

export interface FakePrograms {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** A program whose body is JavaScript; `args` are its arguments. */
  add(name: string, body: string): void;
  /** One whose body is a script of /bin/sh, which starts in a tenth of the time. */
  addShell(name: string, body: string): void;
}

export function fakePrograms(): FakePrograms {
  const folder = temporaryFolder();
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  if (existsSync('/usr/bin/setpriv')) symlinkSync('/usr/bin/setpriv', join(bin, 'setpriv'));
  const write = (name: string, text: string) => writeFileSync(join(bin, name), text, { mode: 0o755 });
  return {
    folder,
    env: { PATH: bin, HOME: folder },
    add: (name, body) =>
      write(name, `#!${process.execPath}\nconst fs = require('node:fs'), args = process.argv.slice(2);\n${body}\n`),
    addShell: (name, body) => write(name, `#!/bin/sh\n${body}\n`),
  };
}

/** Answers what `findInterpreter` asks. */
export function pythonScript(version: string, answer: { hasVenv?: boolean; usable?: boolean } = {}): string {
  const { hasVenv = true, usable = true } = answer;
  return `if (args[0] === '-c') console.log(JSON.stringify({ executable: process.argv[1], version: '${version}', hasVenv: ${hasVenv}, usable: ${usable} }));`;
}
