/** `.temper/stack.json`: what the stack chose and started, for adoption, for the next start, and for cleaning up after a kill. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { ProcessMark } from './processes.ts';

export interface StackPorts {
  readonly temporal: number;
  readonly ui: number;
  readonly engine: number;
}

export interface StackFile {
  readonly schema: 1;
  readonly pid: number;
  readonly startTime: string;
  readonly socket: string;
  /** Null until they are chosen for the first time. */
  readonly ports: StackPorts | null;
  readonly children: readonly ProcessMark[];
}

/** Null where there is none or it cannot be read: it holds nothing that cannot be chosen anew. */
export function readStackFile(file: string): StackFile | null {
  try {
    const stack = JSON.parse(readFileSync(file, 'utf8')) as StackFile;
    return stack.schema === 1 && Array.isArray(stack.children) ? stack : null;
  } catch {
    return null;
  }
}

export function writeStackFile(file: string, stack: StackFile): void {
  writeAtomically(file, `${JSON.stringify(stack, null, 2)}\n`);
}

/** Readers see the old bytes or the new ones. */
export function writeAtomically(file: string, text: string): void {
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600 });
  renameSync(temporary, file);
}
