/**
 * Points: names for moments of a process, passed at its own seams. The product knows nothing of them; the entries beside
 * this file start it with its seams wrapped. A process that passes a point looks whether it is aimed at: then it writes
 * one line to disk and kills, freezes or holds itself there.
 */
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Aim, Hit } from './protocol.ts';

const POLL_MS = 5;

const folder = process.env['TEMPER_CRASH_FOLDER'] ?? '';
let processName = '';
/** How often each point was passed since the aim in hand was taken. */
let passed = { row: '', count: 0 };

export function openPoints(name: string): void {
  if (folder === '') throw new Error('TEMPER_CRASH_FOLDER must name the folder of aims and hits, it is not set');
  processName = name;
}

/** Whether this project's store is in a bucket. */
export function isInBucket(): boolean {
  return process.env['TEMPER_CRASH_STORE'] === 'bucket';
}

/** Passes a point at a synchronous seam: whoever is held there holds the whole process. */
export function pass(point: string): void {
  if (isHit(point, true)) act(point);
}

/** Passes a point at an asynchronous seam: whoever is held there holds only what awaits it. */
export async function reach(point: string): Promise<void> {
  if (!isHit(point, true)) return;
  const release = act(point);
  if (release !== null) await appearance(release);
}

async function appearance(file: string): Promise<void> {
  while (!existsSync(file)) await sleep(POLL_MS);
}

/** Whether the next pass of a point will be a hit: a write may then be torn. */
export function willHit(point: string): boolean {
  return isHit(point, false);
}

function isHit(point: string, isPass: boolean): boolean {
  if (isPass) trace(point);
  const aim = readAim();
  if (aim?.point !== point) return false;
  if (passed.row !== aim.row) passed = { row: aim.row, count: 0 };
  if (isPass) passed.count += 1;
  return (isPass ? passed.count : passed.count + 1) === aim.occurrence;
}

/** The file whose appearance releases a held process. */
function act(point: string): string | null {
  const aim = readAim()!;
  // Taken once: whoever starts in this process's place must not be hit again.
  rmSync(aimFile());
  const { row, occurrence, action } = aim;
  const hit: Hit = { row, time: Date.now(), process: processName, pid: process.pid, point, occurrence, action };
  writeSynced(join(folder, 'hits.jsonl'), hit);
  if (action === 'hold') return join(folder, `released-${row}`);
  process.kill(process.pid, action === 'kill' ? 'SIGKILL' : 'SIGSTOP');
  return null;
}

function aimFile(): string {
  return join(folder, `aim-${processName}.json`);
}

function readAim(): Aim | null {
  try {
    return JSON.parse(readFileSync(aimFile(), 'utf8')) as Aim;
  } catch {
    return null;
  }
}

/** The row's recovery is measured by these lines. */
function trace(point: string): void {
  const line = { time: Date.now(), process: processName, pid: process.pid, point };
  appendFileSync(join(folder, 'trace.jsonl'), `${JSON.stringify(line)}\n`);
}

function writeSynced(file: string, value: object): void {
  const descriptor = openSync(file, 'a');
  writeSync(descriptor, `${JSON.stringify(value)}\n`);
  fsyncSync(descriptor);
  closeSync(descriptor);
}
