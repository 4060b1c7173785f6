/** Things made once in the user's cache folder: one process makes them, a half-made one is made anew, a failed one leaves nothing. */
import { existsSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TemperError } from '../core/failures.ts';
import { withFileLock } from './file-lock.ts';
import { makeFolder } from './folders.ts';
import type { StackEvent } from './local-stack/events.ts';

export type ProgressEvent = Extract<StackEvent, { kind: 'progress' }>;

/** Tells how far one task is; elapsed time is counted from its making. */
export interface Progress {
  tell(message: string, count?: { done: number; total: number | null; unit: NonNullable<ProgressEvent['unit']> }): void;
  finish(message: string): void;
}

export interface InstallOptions {
  readonly env: NodeJS.ProcessEnv;
  /** The user's cache folder. */
  readonly cache: string;
  readonly signal?: AbortSignal;
  readonly onEvent: (event: StackEvent) => void;
}

const TELL_EVERY_MS = 200;
const MARKER = '.complete';
const FULL = /no space left on device|os error 28\b|ENOSPC|EDQUOT|disk quota exceeded|not enough space on the disk/i;

export function trackProgress(task: ProgressEvent['task'], onEvent: (event: StackEvent) => void): Progress {
  const startedAt = Date.now();
  const send = (
    message: string,
    finished: boolean,
    count: { done: number; total: number | null; unit: ProgressEvent['unit'] } | null,
  ) =>
    onEvent({
      kind: 'progress',
      task,
      message,
      finished,
      done: count?.done ?? null,
      total: count?.total ?? null,
      unit: count?.unit ?? null,
      elapsedSeconds: Math.round((Date.now() - startedAt) / 1000),
    });
  let last = { message: '', at: 0 };
  return {
    tell(message, count) {
      if (message === last.message && Date.now() - last.at < TELL_EVERY_MS) return;
      last = { message, at: Date.now() };
      send(message, false, count ?? null);
    },
    finish: (message) => send(message, true, null),
  };
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
  makeFolder(dirname(folder));
  await withFileLock(`${folder}.lock`, () => makeWhole(folder, make), onWait, signal);
}

async function makeWhole(folder: string, make: (partial: string) => Promise<void>): Promise<void> {
  if (isComplete(folder)) return;
  const partial = `${folder}-partial`;
  rmSync(partial, { recursive: true, force: true });
  try {
    makeFolder(partial);
    await make(partial);
    writeFileSync(join(partial, MARKER), '');
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw isDiskFull(error) ? diskFull(folder, error) : error;
  }
}

export function isDiskFull(error: unknown): boolean {
  return (
    error instanceof Error &&
    !(error instanceof TemperError) &&
    FULL.test(`${(error as NodeJS.ErrnoException).code} ${error.message}`)
  );
}

function diskFull(folder: string, cause: unknown): TemperError {
  const place = dirname(folder);
  return new TemperError(
    'BadConfig',
    `the disk is full while installing into ${place} (${freeSpace(place)} free); make room there or set TEMPER_CACHE to another folder`,
    { cause },
  );
}

function freeSpace(folder: string): string {
  const { bavail, bsize } = statfsSync(folder);
  return `${Math.round((bavail * bsize) / 1024 ** 2)} MB`;
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
