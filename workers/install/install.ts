/** Things made once in the user's cache folder: one process makes them, a half-made one is made anew, a failed one leaves nothing. */
import { existsSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { CommandResult } from '../process/command.ts';
import { withFileLock } from '../../store/bytes/file-lock.ts';
import { makeFolder } from '../project/folders.ts';
import type { StackEvent } from '../events.ts';

export type ProgressEvent = Extract<StackEvent, { kind: 'progress' }>;

type Count = Pick<ProgressEvent, 'done' | 'total'>;
const NOT_COUNTED: Count = { done: null, total: null };

/** Tells how far one task is; elapsed time is counted from its beginning. */
export interface Progress {
  report(message: string, count?: Count): void;
}

export interface InstallOptions {
  readonly env: NodeJS.ProcessEnv;
  /** The user's cache folder. */
  readonly cache: string;
  readonly signal?: AbortSignal | undefined;
  readonly onEvent: (event: StackEvent) => void;
}

const REPORT_EVERY_MS = 200;
const REPORT_AGAIN_MS = 1000;
const MARKER = '.complete';
const MORE_ROOM = 'free some space there or set TEMPER_CACHE to another folder';
/** Python's ensurepip keeps its reason to itself. */
const NEARLY_FULL_BYTES = 4 * 1024 ** 2;
/** Messages of Node, uv, pip and Go about a full disk. */
const FULL = /no space left on device|os error 28\b|ENOSPC|EDQUOT|disk quota exceeded|not enough space on the disk/i;

/** Does a task and tells of it at least every second, also while what it runs says nothing; last, that it is done. */
export async function withProgress(
  task: ProgressEvent['task'],
  onEvent: (event: StackEvent) => void,
  doneMessage: string,
  work: (progress: Progress) => Promise<void>,
): Promise<void> {
  const startedAt = performance.now();
  let last: ProgressEvent | null = null;
  let reportedAt = -Infinity;
  const send = (message: string, finished: boolean, count: Count = NOT_COUNTED) => {
    const elapsedSeconds = Math.round((performance.now() - startedAt) / 1000);
    last = { kind: 'progress', task, message, finished, ...count, elapsedSeconds };
    reportedAt = performance.now();
    onEvent(last);
  };
  const again = () => {
    if (last !== null && performance.now() - reportedAt >= REPORT_AGAIN_MS)
      send(last.message, false, { done: last.done, total: last.total });
  };
  const beat = setInterval(again, REPORT_AGAIN_MS);
  try {
    await work({
      report(message, count) {
        if (message !== last?.message || performance.now() - reportedAt >= REPORT_EVERY_MS) send(message, false, count);
      },
    });
    send(doneMessage, true);
  } finally {
    clearInterval(beat);
  }
}

export function isComplete(folder: string): boolean {
  return existsSync(join(folder, MARKER));
}

/** Has `make` fill a folder under a temporary name; it gets its real one when it is whole. */
export async function installOnce(
  folder: string,
  make: (partial: string) => Promise<void>,
  { onWait, signal }: { onWait: () => void; signal?: AbortSignal | undefined },
): Promise<void> {
  if (isComplete(folder)) return;
  makeFolder(dirname(folder), MORE_ROOM);
  await withFileLock(`${folder}.lock`, () => makeWhole(folder, make), onWait, signal);
}

async function makeWhole(folder: string, make: (partial: string) => Promise<void>): Promise<void> {
  if (isComplete(folder)) return;
  const partial = `${folder}-partial`;
  rmSync(partial, { recursive: true, force: true });
  try {
    await explainFailure(folder, async () => {
      makeFolder(partial, MORE_ROOM);
      await make(partial);
      writeFileSync(join(partial, MARKER), '');
    });
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

export const saysDiskFull = (output: string): boolean => FULL.test(output);

export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof TemperError) return false;
  return FULL.test(`${(error as NodeJS.ErrnoException).code} ${error.message}`);
}

/** Reports errors that the user can fix in one line: a full disk with its folder, a program with its last words. */
export async function explainFailure(folder: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    const place = dirname(folder);
    if (isDiskFull(cause) || (cause instanceof CommandFailed && freeBytes(place) < NEARLY_FULL_BYTES)) {
      const rule = `the disk is full while installing into ${place}`;
      throw badConfig(`${rule}; ${MORE_ROOM}`, { cause });
    }
    if (!(cause instanceof CommandFailed)) throw cause;
    throw badConfig(`${cause.message}; check the network connection, then try again`, { cause });
  }
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** A program that an installation needed and that failed: its last words are the message. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';

  constructor(what: string, output: string) {
    const lines = output
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
    super(`${what} failed: ${lines.slice(-4).join(' · ') || 'no output'}`);
    if (FULL.test(output)) this.message = `${what} failed: no space left on device`;
  }
}

/** Waits for a program, which must end with 0. */
export async function requireSuccess(what: string, running: Promise<CommandResult>): Promise<void> {
  const { code, output } = await running;
  if (code !== 0) throw new CommandFailed(what, output);
}
